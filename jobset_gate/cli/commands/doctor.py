"""`doctor`: what is wrong with an installation, and what to do about it."""

from typing import Annotated

import typer

from jobset_gate.cli.options import Context, Kubeconfig
from jobset_gate.cli.options import namespace as place
from jobset_gate.cli.printers.text_format import TextFormat
from jobset_gate.cli.runner import run_and_exit


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "doctor",
        short_help="Find what is wrong with an installation.",
        epilog=f"Example: {program} doctor",
    )
    def doctor(
        *,
        namespace: Annotated[
            str | None,
            place(
                "Look at gangs of this namespace only, and make dry runs there; otherwise at all gangs, with dry "
                "runs in the context's namespace."
            ),
        ] = None,
        output: Annotated[
            TextFormat, typer.Option("-o", "--output", help="The form of what is printed.")
        ] = TextFormat.TEXT,
        native: Annotated[
            bool,
            typer.Option("--native", help="Also try native gang scheduling: this creates two pods for a moment."),
        ] = False,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Check the CRD, the webhooks and their certificates, rights, versions, and who else is in the way.

        Each finding comes with its remedy. Changes nothing without --native: the rest is tried by dry runs. What you
        may not see is said to be unknown. Ends with 1 if there is an error among the findings, with 0 otherwise.
        """
        from jobset_gate.cli.doctor import run  # noqa: PLC0415 - see app.py

        wanted = run.DoctorOptions(namespace, output, native, kubeconfig, context, program)
        run_and_exit(run.run(wanted))
