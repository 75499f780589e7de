"""`wait`: until a gang is released or a pod group satisfied, or has timed out; for scripts and pipelines."""

from enum import StrEnum
from typing import Annotated

import typer

from jobset_gate.cli.options import Context, Kubeconfig
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.cli.subject_options import ControllerConfig, Namespace
from jobset_gate.cli.subject_options import timeout as limit


class For(StrEnum):
    """What may be waited for."""

    RELEASED = "released"
    TIMED_OUT = "timedout"
    OPENED = "opened"
    SATISFIED = "satisfied"


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "wait",
        short_help="Wait until a gang is released, or has timed out.",
        epilog=f"Example: {program} wait jobset/train --for=released --timeout=10m",
    )
    def wait(
        *,
        names: Annotated[
            list[str],
            typer.Argument(
                metavar="[jobset/|podgroup/]NAME",
                help="JobSets; with a prefix pod groups. gang/NAME is a pod group, too.",
                show_default=False,
            ),
        ],
        end: Annotated[
            For | None,
            typer.Option(
                "--for",
                help="What to wait for: of JobSets released (the default) or timedout, of pod groups opened, satisfied "
                "(the default) or timedout.",
                show_default=False,
            ),
        ] = None,
        timeout: Annotated[
            float,
            limit("How long at most, such as 30s or 1h30m; 0 looks once, below zero waits for a week.", default="30s"),
        ] = 30.0,
        namespace: Namespace = None,
        config: ControllerConfig = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Wait for what is decided about the present generation of each JobSet, or of each pod group.

        Ends with exit code 3 when the time is over, and with 1 when the other outcome comes, or nothing can come any
        more. Watches the JobSet and its ConfigMap, with the right to get, list and watch JobSets; of pod groups their
        PodGroups, pods and records.
        """
        from jobset_gate.cli.commands import wait_run  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.watch.outcome import WaitGoal  # noqa: PLC0415 - see app.py

        wanted = wait_run.WaitOptions(
            names, None if end is None else WaitGoal(end), timeout, namespace, config, program
        )
        run_and_exit(wait_run.run(wanted, kubeconfig=kubeconfig, context=context))
