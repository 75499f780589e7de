"""`watch`: one gang, live, until it is decided."""

from typing import Annotated

import typer

from jobset_gate.cli.options import Context, Kubeconfig
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.cli.subject_options import ControllerConfig, Namespace, Subject
from jobset_gate.cli.subject_options import timeout as limit


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "watch",
        short_help="Watch a gang start, until it is decided.",
        epilog=f"Example: {program} watch train -n team",
    )
    def watch(
        *,
        name: Subject,
        timeout: Annotated[
            float | None,
            limit("How long at most, such as 30s or 1h30m; otherwise until it is decided."),
        ] = None,
        namespace: Namespace = None,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Show how many pods have started of how many, and what the others wait for, as it changes.

        On a terminal with bars that move; elsewhere a line for every change. Ends with 0 when the gang is released or
        the group has its minimum bound, with 1 when it times out or nothing can come any more, with 3 when the time
        is over. Asks the API server only; needs the right to get, list and watch JobSets, Jobs, pods and ConfigMaps.
        """
        from jobset_gate.cli.commands import watch_run  # noqa: PLC0415 - see app.py

        wanted = watch_run.WatchOptions(name, timeout, namespace, config, program)
        run_and_exit(watch_run.run(wanted, kubeconfig=kubeconfig, context=context))
