"""`wait`: until a gang is released or a pod group satisfied, or has timed out; for scripts and pipelines."""

import asyncio
from contextlib import suppress
from dataclasses import replace
from typing import Annotated, Final

import typer

from jobset_gate.cli.cluster import Invocation
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.names import KIND_OF, resolve_gang
from jobset_gate.cli.fetch.outcome import GANG_GOALS, WaitGoal, timeout_error
from jobset_gate.cli.fetch.resolver import Resolver, open_resolver
from jobset_gate.cli.fetch.view import WatchView, find_view, wait_until
from jobset_gate.cli.options import ControllerConfig, Owner, ResourceArgument, ResourceKind, new_app, parse_resource
from jobset_gate.cli.options import timeout as limit
from jobset_gate.cli.printers import output
from jobset_gate.sources.table import JOBSET

_OF_POD_GROUPS: Final = (WaitGoal.OPENED, WaitGoal.SATISFIED)
"""Goals that only pod groups have."""
app = new_app()


@app.command("wait", epilog="Example: {program} wait jobset/train --for=released --timeout=10m")
async def wait(
    *,
    names: Annotated[
        list[str],
        typer.Argument(
            metavar="[jobset/|job/|lws/|startgroup/|trainjob/|pod/|podgroup/]NAME",
            help="Gangs: JobSets, Jobs, LeaderWorkerSets and start groups; with a prefix those of pods, or pod groups. "
            "gang/NAME is one, too.",
            show_default=False,
        ),
    ],
    end: Annotated[
        WaitGoal | None,
        typer.Option(
            "--for",
            help="What to wait for: of JobSets, Jobs, LeaderWorkerSets and start groups released (the default) or "
            "timedout, of pod groups opened, satisfied (the default) or timedout.",
            show_default=False,
        ),
    ] = None,
    owner: Owner = "",
    timeout: Annotated[
        float,
        limit("How long at most, such as 30s or 1h30m; 0 looks once, below zero waits for a week.", default="30s"),
    ] = 30.0,
    config: ControllerConfig = None,
    invocation: Invocation,
) -> ExitCode:
    r"""Wait for what is decided about the present generation of each gang, or of each pod group.

    Ends with exit code 3 when the time is over, and with 1 when the other outcome comes, or nothing can come any
    more. A LeaderWorkerSet as a whole is waited for until the time is over, since LWS creates a group that has timed
    out again.

    Watches the JobSet (or Job) and its ConfigMap, with the right to get, list and watch JobSets (or Jobs); of
    start groups their pods and ConfigMap; of LeaderWorkerSets, whose groups below spec.replicas all have to start,
    also these and StatefulSets; of pod groups their PodGroups, pods and records.

    kubectl alone waits for a start group, too: kubectl wait configmap -l jobset-gate.dev/start-group=ring
    --for=jsonpath='{.metadata.annotations.jobset-gate\.dev/group-started}'=True
    """
    arguments = [_checked(parse_resource(it, owner), it, end) for it in names]
    async with open_resolver(invocation, config) as resolver:
        codes = await asyncio.gather(*(_wait(resolver, it, end, timeout) for it in dict.fromkeys(arguments)))
    for line in resolver.permissions.missing:
        output.err(f"warning: {line}")
    # A failure comes before a timeout.
    return next((code for code in (ExitCode.USAGE, ExitCode.ERROR, ExitCode.TIMEOUT) if code in codes), ExitCode.OK)


def _checked(it: ResourceArgument, text: str, goal: WaitGoal | None) -> ResourceArgument:
    """Raises CommandError for what cannot be waited for."""
    wrong = ""
    if it.kind in (*KIND_OF, ResourceKind.TRAIN_JOB, ResourceKind.POD) and goal not in (None, *GANG_GOALS):
        kind = "pod" if it.kind is ResourceKind.POD else KIND_OF.get(it.kind, JOBSET.kind)
        wrong = f"a {kind}'s gate is released or timedout, not {goal}"
    elif it.kind is ResourceKind.POD_GROUP and goal is WaitGoal.RELEASED:
        wrong = "a pod group is opened, and satisfied: say --for=opened or --for=satisfied"
    if wrong:
        raise CommandError(f"{text}: {wrong}", ExitCode.USAGE)
    return it


async def _wait(resolver: Resolver, argument: ResourceArgument, goal: WaitGoal | None, seconds: float) -> ExitCode:
    """Waits, and prints how it ended. `goal` None: what the user hopes for, by kind."""
    if argument.kind is ResourceKind.ANY and goal in _OF_POD_GROUPS:
        argument = replace(argument, kind=ResourceKind.POD_GROUP)
    try:
        argument = await resolve_gang(resolver, argument)
        if argument.kind is ResourceKind.ANY and goal is WaitGoal.RELEASED:
            argument = replace(argument, kind=ResourceKind.JOBSET)
        view = await find_view(resolver, argument, explains=False)
        reached = await _outcome(resolver, view, goal or view.goal, seconds)
    except CommandError as failed:
        output.err(f"error: {failed}")
        return failed.code
    output.out(reached + "\n")
    return ExitCode.OK


async def _outcome(resolver: Resolver, view: WatchView, goal: WaitGoal, seconds: float) -> str:
    """Raises CommandError if anything but the goal comes."""
    now = view.first
    if not now.is_over(goal) and seconds > 0:
        async with view:
            with suppress(TimeoutError):
                now = await wait_until(view, lambda now: now.is_over(goal), seconds)
    if not now.is_over(goal):
        why = resolver.invocation.command(f"jobset-gate why {view.argument} -n {resolver.namespace}")
        raise timeout_error(view.subject, goal, seconds, why)
    return now.text(view.subject, goal)
