"""`demo`: gangs on the embedded cluster, in real time; `demo groups`: two others, in the cluster's own time."""

import asyncio
from typing import Annotated, Final

import typer

from jobset_gate.cli.options import new_app
from jobset_gate.cli.runner import run_command, run_service
from jobset_gate_demo import gang, podgroups, serve
from jobset_gate_demo.fake.clock import run_virtual

app = new_app()
demos = new_app()
app.add_typer(demos, name="demo", short_help="Watch two gangs on a cluster inside this process.")


_OF_THE_STORY: Final = {"pods": "--pods", "jobs": "--jobs", "seconds": "--seconds"}


@demos.callback(invoke_without_command=True, epilog="Example: {program} demo --pods 20 --seconds 4")
def demo(
    context: typer.Context,
    *,
    pods: Annotated[
        int, typer.Option("--pods", metavar="N", min=1, max=1000, help="Pods per Job of the first gang.")
    ] = 100,
    jobs: Annotated[int, typer.Option("--jobs", metavar="N", min=1, max=20, help="Jobs of the first gang.")] = 3,
    seconds: Annotated[
        float,
        typer.Option("--seconds", metavar="SECONDS", min=0.5, max=600, help="When the last of the late nodes joins."),
    ] = 8.0,
    stay: Annotated[
        bool, typer.Option("--serve", help="Instead, keep a cluster with five gangs and the status page, until Ctrl-C.")
    ] = False,
) -> None:
    """Show what jobset-gate does, with a cluster that lives in this process.

    The webhook and the controller are the real ones; API server, JobSet and Job controllers, scheduler and
    kubelets are stand-ins. A first gang is held until the pods on the latest nodes have started, then released. A
    second one times out and names the pods it misses. Exits with 1 if either goes another way.

    With --serve the cluster stays, on loopback only, with five gangs in different states, so that the commands and
    the status page can be tried without a cluster of your own. Exits with 0 at Ctrl-C.
    """
    if context.invoked_subcommand is not None:
        return
    if stay:
        if given := [option for name, option in _OF_THE_STORY.items() if _is_given(context, name)]:
            raise typer.BadParameter(f"--serve has gangs of its own, so {given[0]} has no meaning with it")
        asyncio.run(run_service(serve.serve(), lambda _: None))
        raise typer.Exit
    plan = gang.GangPlan(jobs=jobs, pods=pods, seconds=seconds)
    raise typer.Exit(asyncio.run(run_command(gang.demo(plan))) or 0)


def _is_given(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


@demos.command(
    "groups",
    short_help="Watch two pod groups block each other, and then not.",
    epilog="Example: {program} demo groups --speed 120",
)
def groups(
    speed: Annotated[
        float,
        typer.Option("--speed", metavar="TIMES", min=1, max=100_000, help="How much faster the cluster's time is."),
    ] = 60.0,
) -> None:
    """Show a deadlock of two pod groups, with a cluster that lives in this process.

    Two gangs each need 60 % of the GPUs, and their pods are created alternately. Without jobset-gate each gets half
    of the cluster, and neither ever has enough. With it one gang is placed as a whole, and then the other. The
    webhook and the controller are the real ones, everything else is simulated. Exits with 1 if anything goes another
    way.
    """
    raise typer.Exit(run_virtual(run_command(podgroups.demo(speed=speed)), pace=1 / speed) or 0)
