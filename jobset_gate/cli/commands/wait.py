"""`wait`: until a gang is released or a pod group satisfied, or has timed out; for scripts and pipelines."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Final

import typer

from jobset_gate.barrier.source import Source
from jobset_gate.cli.cluster import ClusterOptions, Invocation
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.cli.fetch.gangs import argument_of, kubectl_name
from jobset_gate.cli.fetch.names import KIND_OF, resolve_gang
from jobset_gate.cli.fetch.outcome import GANG_GOALS, WaitGoal, WaitOutcome, gang_outcome, timeout_error
from jobset_gate.cli.fetch.resolver import Resolver, find, open_resolver
from jobset_gate.cli.fetch.view import FIRST_READ_TIMEOUT, GangView, PodGroupView, find_lws_view, get_gang, wait_until
from jobset_gate.cli.options import (
    ControllerConfig,
    Namespace,
    Owner,
    ResourceArgument,
    ResourceKind,
    new_app,
    parse_resource,
    program,
)
from jobset_gate.cli.options import timeout as limit
from jobset_gate.cli.printers import output
from jobset_gate.cli.runner import run_and_exit
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.sources.table import JOBSET

_OF_POD_GROUPS: Final = (WaitGoal.OPENED, WaitGoal.SATISFIED)
"""Goals that only pod groups have."""
app = new_app()


@app.command("wait", epilog="Example: {program} wait jobset/train --for=released --timeout=10m")
def wait(
    ctx: typer.Context,
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
    namespace: Namespace = None,
    config: ControllerConfig = None,
    cluster: ClusterOptions,
) -> None:
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
    run_and_exit(run(arguments, end, timeout, Invocation(program(ctx), cluster, namespace), config))


async def run(
    arguments: Sequence[ResourceArgument],
    goal: WaitGoal | None,
    seconds: float,
    invocation: Invocation,
    config: Path | None,
) -> ExitCode:
    """Prints the outcome of each; `goal` None: what the user hopes for, by kind. A failure comes before a timeout."""
    async with open_resolver(invocation, config) as resolver:
        waits = [_Wait(resolver, it, goal, seconds) for it in dict.fromkeys(arguments)]
        codes = await asyncio.gather(*(it.run() for it in waits))
    for line in resolver.permissions.missing:
        output.err(f"warning: {line}")
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


@dataclass(frozen=True, slots=True)
class _Wait:
    resolver: Resolver
    argument: ResourceArgument
    goal: WaitGoal | None
    seconds: float

    async def run(self) -> ExitCode:
        """Waits, and prints how it ended."""
        argument = self.argument
        if argument.kind is ResourceKind.ANY and self.goal in _OF_POD_GROUPS:
            argument = replace(argument, kind=ResourceKind.POD_GROUP)
        try:
            argument = await resolve_gang(self.resolver.client, self.resolver.namespace, argument)
            if argument.kind is ResourceKind.ANY and self.goal is WaitGoal.RELEASED:
                argument = replace(argument, kind=ResourceKind.JOBSET)
            if argument.kind is ResourceKind.LWS:
                reached = await self._groups(argument.name)
            else:
                reached = await find(argument, self._gang, self._pod_group)
        except CommandError as failed:
            output.err(f"error: {failed}")
            return failed.code
        output.out(reached + "\n")
        return ExitCode.OK

    async def _gang(self, source: Source, name: str) -> str:
        """Raises CommandError if anything but the goal comes."""
        its, goal = self.resolver, self.goal or WaitGoal.RELEASED
        gang = await get_gang(its.client, its.namespace, source, name, its.permissions)
        now = gang_outcome(gang, time.time())
        if not now.is_over(goal) and self.seconds > 0:
            async with GangView(its.client, gang.workload, its.permissions, pods=False) as view:
                with suppress(TimeoutError):
                    now = await wait_until(view, lambda now: now.is_over(goal), self.seconds)
        return self._result(kubectl_name(gang.workload), argument_of(gang.workload), goal, now)

    async def _groups(self, name: str) -> str:
        """Of a LeaderWorkerSet. Raises CommandError if anything but the goal comes."""
        goal = self.goal or WaitGoal.RELEASED
        async with await find_lws_view(self.resolver, name) as view:
            with suppress(TimeoutError):
                now = await wait_until(view, lambda _: True, max(self.seconds, FIRST_READ_TIMEOUT))
                now = await wait_until(view, lambda now: now.is_over(goal), self.seconds)
        return self._result(view.subject, view.subject, goal, now)

    async def _pod_group(self, name: str) -> str:
        """Raises CommandError if anything but the goal comes."""
        goal, now = self.goal or WaitGoal.SATISFIED, WaitOutcome()
        # Whether there is room is of no interest here, so neither nodes nor what is bound to them have to be watched.
        settings = self.resolver.settings.model_copy(update={"capacity_check": CapacityCheck.OFF})
        async with PodGroupView(self.resolver, name, settings) as view:
            with suppress(TimeoutError):
                now = await wait_until(view, lambda _: True, max(self.seconds, FIRST_READ_TIMEOUT))
                now = await wait_until(view, lambda now: now.is_over(goal), self.seconds)
        return self._result(view.subject, view.subject, goal, now)

    def _result(self, subject: str, name: str, goal: WaitGoal, now: WaitOutcome) -> str:
        """Raises CommandError if the goal was not reached."""
        if not now.is_over(goal):
            why = self.resolver.invocation.command(f"jobset-gate why {name} -n {self.resolver.namespace}")
            raise timeout_error(subject, goal, self.seconds, why)
        return now.text(subject, goal)
