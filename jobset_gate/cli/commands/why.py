"""`why`: why a gang still waits, and what to do about it."""

from typing import Annotated

import typer

from jobset_gate.cli.options import Context, Kubeconfig
from jobset_gate.cli.printers.text_format import TextFormat
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.cli.subject_options import ControllerConfig, Namespace, Subjects


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "why",
        short_help="Say why a gang still waits, and what to do about it.",
        epilog=f"Example: {program} why train -n team",
    )
    def why(
        *,
        names: Subjects,
        namespace: Namespace = None,
        output: Annotated[
            TextFormat, typer.Option("-o", "--output", help="The form of what is printed.")
        ] = TextFormat.TEXT,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Say how many pods have started of how many, and of each missing one why.

        In the words of the scheduler, the kubelet or the quota, grouped, longest waiting first; then how much time is
        left, what happens after that, and the next command to run. Asks the API server only, so it works without a
        controller, and then says so. What you may not read is named, and the rest is shown.
        """
        from jobset_gate.cli.commands import why_describe  # noqa: PLC0415 - see app.py

        wanted = why_describe.ExplainOptions(names, namespace, output, config, kubeconfig, context, program)
        run_and_exit(why_describe.why(wanted))
