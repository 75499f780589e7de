"""`describe`: everything known of a gang on one page."""

import typer

from jobset_gate.cli.options import Context, Kubeconfig
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.cli.subject_options import ControllerConfig, Namespace, Subjects


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "describe",
        short_help="Show everything known of a gang.",
        epilog=f"Example: {program} describe train -n team",
    )
    def describe(
        *,
        names: Subjects,
        namespace: Namespace = None,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show what is set and what was decided, Job by Job or pod by pod, why it waits, and its Events.

        For people, as kubectl's describe is; programs ask `why -o json`. Asks the API server only. What you may not
        read is named, and the rest is shown.
        """
        from jobset_gate.cli.commands import why_describe  # noqa: PLC0415 - see app.py

        wanted = why_describe.ExplainOptions(
            names, namespace, config=config, kubeconfig=kubeconfig, context=context, program=program
        )
        run_and_exit(why_describe.describe(wanted))
