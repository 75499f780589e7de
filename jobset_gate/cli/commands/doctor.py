"""`doctor`: what is wrong with an installation, and what to do about it."""

from typing import Annotated

import typer

from jobset_gate.cli import logs
from jobset_gate.cli.doctor import run
from jobset_gate.cli.invocation import Invocation
from jobset_gate.cli.options import Context, Kubeconfig, LogLevel, TextFormat, TextOutput, new_app, program
from jobset_gate.cli.options import namespace as place
from jobset_gate.cli.runner import run_and_exit

app = new_app()


@app.command(
    "doctor",
    short_help="Find what is wrong with an installation.",
    epilog="Example: {program} doctor",
)
def doctor(
    ctx: typer.Context,
    *,
    namespace: Annotated[
        str | None,
        place(
            "Look at gangs of this namespace only, and make dry runs there; otherwise at all gangs, with dry "
            "runs in the context's namespace."
        ),
    ] = None,
    output: TextOutput = TextFormat.TEXT,
    native: Annotated[
        bool, typer.Option("--native", help="Also try native gang scheduling: this creates two pods for a moment.")
    ] = False,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
) -> None:
    """Check the CRD, the webhooks and their certificates, rights, versions, and who else is in the way.

    Each finding comes with its remedy. Changes nothing without --native: the rest is tried by dry runs. What you
    may not see is reported as unknown. Ends with 1 if there is an error among the findings, with 0 otherwise.
    """
    invocation = Invocation(program(ctx), kubeconfig, context, namespace)
    checks = run.run(namespace, output, native=native, invocation=invocation)
    run_and_exit(checks, lambda: logs.configure(level=LogLevel.ERROR))
