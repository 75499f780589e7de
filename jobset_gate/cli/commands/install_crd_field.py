"""`install-crd-field`: the field groupSchedulingConfig in the cluster's JobSet CRD."""

import asyncio
from typing import Annotated

import typer

from jobset_gate.cli import logs
from jobset_gate.cli.options import Context, Kubeconfig, LogLevel, new_app
from jobset_gate.cli.printers import output
from jobset_gate.cli.serve import crd

app = new_app()


@app.command(
    "install-crd-field",
    short_help="Add the field to the JobSet CRD.",
    epilog="Example: {program} install-crd-field --context my-cluster",
)
def install_crd_field(
    remove: Annotated[bool, typer.Option("--remove", help="Take the field out again.")] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Add spec.groupSchedulingConfig to the JobSet CRD of a cluster, once.

    A running controller keeps it there by itself; this is for clusters where it may not touch CRDs. The CRD
    keeps its owner. --remove makes the API server drop the field from what is written from then on.
    """
    logs.configure(level=LogLevel.WARNING)
    output.out(asyncio.run(crd.run(kubeconfig=kubeconfig, context=context, remove=remove)) + "\n")
