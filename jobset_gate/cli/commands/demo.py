"""`demo`: two gangs on the embedded cluster, in real time."""

from enum import StrEnum
from typing import Annotated

import typer


class Output(StrEnum):
    """The form of what is printed."""

    TEXT = "text"
    JSON = "json"


def register(app: typer.Typer, program: str) -> None:
    """Adds the command."""

    @app.command(
        "demo",
        short_help="Watch two gangs on a cluster inside this process.",
        epilog=f"Example: {program} demo --pods 20 --seconds 4",
    )
    def demo(
        pods: Annotated[
            int, typer.Option("--pods", metavar="N", min=1, max=1000, help="Pods per Job of the first gang.")
        ] = 100,
        jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, max=20, help="Jobs of the first gang.")] = 3,
        seconds: Annotated[
            float,
            typer.Option(
                "--seconds", metavar="SECONDS", min=0.5, max=600, help="When the last of the late nodes joins."
            ),
        ] = 8.0,
        output: Annotated[
            Output, typer.Option("-o", "--output", help="json: end with one line of facts.")
        ] = Output.TEXT,
    ) -> None:
        """Show what jobset-gate does, with a cluster that lives in this process.

        The webhook and the controller are the real ones; API server, JobSet and Job controllers, scheduler and
        kubelets are stand-ins. A first gang is held until the pods on the latest nodes have started, then released. A
        second one times out and names the pods it misses. Exits with 1 if either goes another way.
        """
        import asyncio  # noqa: PLC0415 - see app.py

        from jobset_gate.cli.demo import run, scenario  # noqa: PLC0415 - see app.py

        plan = scenario.Plan(jobs=jobs, pods=pods, seconds=seconds)
        raise typer.Exit(asyncio.run(run.demo(plan, as_json=output is Output.JSON)))
