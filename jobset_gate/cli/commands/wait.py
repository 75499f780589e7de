"""`wait`: until a gang is released, or has timed out; for scripts and pipelines."""

from enum import StrEnum
from typing import Annotated

import typer

from jobset_gate.cli.looking.options import Namespace
from jobset_gate.cli.options import Context, Kubeconfig, LogLevel
from jobset_gate.cli.verbs.durations import seconds


class For(StrEnum):
    """What may be waited for."""

    RELEASED = "released"
    TIMED_OUT = "timedout"


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
            list[str], typer.Argument(metavar="[jobset/]NAME...", help="The JobSets.", show_default=False)
        ],
        end: Annotated[For, typer.Option("--for", help="What to wait for.")] = For.RELEASED,
        timeout: Annotated[
            float,
            typer.Option(
                "--timeout",
                metavar="DURATION",
                parser=seconds,
                help="How long at most, such as 30s or 1h30m; 0 looks once, below zero waits for a week.",
            ),
        ] = 30.0,
        namespace: Namespace = None,
        kubeconfig: Kubeconfig = None,
        context: Context = None,
    ) -> None:
        """Wait for what is decided about the present generation of each JobSet.

        Ends with exit code 3 when the time is over, and with 1 when the other outcome comes, or nothing can come any
        more. Watches the JobSet and its ConfigMap; it needs the right to get, list and watch JobSets.
        """
        import asyncio  # noqa: PLC0415 - see app.py

        from jobset_gate.cli import logs  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.verbs import waiting  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.verbs.standing import End  # noqa: PLC0415 - see app.py

        logs.configure(level=LogLevel.ERROR)
        wanted = waiting.Wanted(names, End(end), timeout, namespace, program)
        raise typer.Exit(asyncio.run(waiting.run(wanted, kubeconfig=kubeconfig, context=context)))
