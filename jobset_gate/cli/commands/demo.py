"""`demo`: two gangs on the embedded cluster, in real time; `demo groups`: two others, in the cluster's own time."""

from enum import StrEnum
from typing import Annotated

import typer


class Output(StrEnum):
    """The form of what is printed."""

    TEXT = "text"
    JSON = "json"


_Output = Annotated[Output, typer.Option("-o", "--output", help="json: end with one line of facts.")]


def register(app: typer.Typer, program: str) -> None:
    """Adds the commands."""
    demos = typer.Typer(rich_markup_mode=None, context_settings={"help_option_names": ["-h", "--help"]})
    _barrier(demos, program)
    _groups(demos, program)
    app.add_typer(demos, name="demo", short_help="Watch two gangs on a cluster inside this process.")


def _barrier(demos: typer.Typer, program: str) -> None:
    @demos.callback(invoke_without_command=True, epilog=f"Example: {program} demo --pods 20 --seconds 4")
    def demo(
        context: typer.Context,
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
        output: _Output = Output.TEXT,
    ) -> None:
        """Show what jobset-gate does, with a cluster that lives in this process.

        The webhook and the controller are the real ones; API server, JobSet and Job controllers, scheduler and
        kubelets are stand-ins. A first gang is held until the pods on the latest nodes have started, then released. A
        second one times out and names the pods it misses. Exits with 1 if either goes another way.
        """
        if context.invoked_subcommand is not None:
            return
        require_demo()
        import asyncio  # noqa: PLC0415 - see app.py

        from jobset_gate.cli import signals  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.demo import gang, gang_scenario  # noqa: PLC0415 - see app.py

        plan = gang_scenario.GangPlan(jobs=jobs, pods=pods, seconds=seconds)
        raise typer.Exit(asyncio.run(signals.run_command(gang.demo(plan, as_json=output is Output.JSON))))


def _groups(demos: typer.Typer, program: str) -> None:
    @demos.command(
        "groups",
        short_help="Watch two pod groups block each other, and then not.",
        epilog=f"Example: {program} demo groups --speed 120",
    )
    def groups(
        speed: Annotated[
            float,
            typer.Option("--speed", metavar="TIMES", min=1, max=100_000, help="How much faster the cluster's time is."),
        ] = 60.0,
        output: _Output = Output.TEXT,
    ) -> None:
        """Show a deadlock of two pod groups, with a cluster that lives in this process.

        Two gangs each need 60 % of the GPUs, and their pods are created alternately. Without jobset-gate each gets half
        of the cluster, and neither ever has enough. With it one gang is placed as a whole, and then the other. The
        webhook and the controller are the real ones, all else is played. Exits with 1 if anything goes another way.
        """
        require_demo()
        from jobset_gate.cli import signals  # noqa: PLC0415 - see app.py
        from jobset_gate.cli.demo import podgroup_scenario, podgroups  # noqa: PLC0415 - see app.py
        from jobset_gate.fake.clock import run_virtual  # noqa: PLC0415 - see app.py

        story = podgroups.demo(podgroup_scenario.PodGroupPlan(), as_json=output is Output.JSON, speed=speed)
        raise typer.Exit(run_virtual(signals.run_command(story), pace=1 / speed))


def require_demo() -> None:
    """Errors: CommandError where only jobset-gate is installed."""
    from importlib.util import find_spec  # noqa: PLC0415 - see app.py

    from jobset_gate.cli.exits import CommandError  # noqa: PLC0415 - see app.py

    if find_spec("jobset_gate.fake") is None:
        raise CommandError("the demo and its cluster are not installed; pip install 'jobset-gate[demo]' adds them")
