"""`install-crd-field`: the field groupSchedulingConfig in the cluster's JobSet CRD."""

from typing import Annotated

import typer

from controllers.barrier import crd_patcher
from jobset_gate import names
from jobset_gate.cli import logs
from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.options import LogLevel, new_app
from jobset_gate.cli.printers import output

app = new_app()
_FIELD = f"spec.{names.CONFIG_FIELD}"
_MESSAGES = {
    crd_patcher.CrdOutcome.EXTENDED: f"{_FIELD} is now part of the CRD {names.JOBSET_CRD}",
    crd_patcher.CrdOutcome.ALREADY_THERE: f"{_FIELD} was already part of the CRD {names.JOBSET_CRD}",
    crd_patcher.CrdOutcome.REMOVED: f"{_FIELD} is no longer part of the CRD {names.JOBSET_CRD}",
    crd_patcher.CrdOutcome.NOT_THERE: f"{_FIELD} was not part of the CRD {names.JOBSET_CRD}, or not by us",
    crd_patcher.CrdOutcome.NOT_INSTALLED: f"the CRD {names.JOBSET_CRD} is not there, nor is the field",
}


@app.command("install-crd-field", epilog="Example: {program} install-crd-field --context my-cluster")
async def install_crd_field(
    *,
    remove: Annotated[bool, typer.Option("--remove", help="Take the field out again.")] = False,
    cluster: ClusterOptions,
) -> None:
    """Add spec.groupSchedulingConfig to the JobSet CRD of a cluster, once.

    A running controller keeps it there; this is for clusters where it may not touch CRDs. The CRD
    keeps its owner. --remove makes the API server drop the field from what is written from then on.
    """
    logs.configure(level=LogLevel.WARNING)
    async with cluster.connect() as client:
        outcome = await (crd_patcher.retract_crd(client) if remove else crd_patcher.extend_crd(client))
    if outcome is crd_patcher.CrdOutcome.NOT_INSTALLED and not remove:
        raise CommandError(f"the CRD {names.JOBSET_CRD} is not there: install JobSet first")
    output.out(f"{_MESSAGES[outcome]}\n")
