"""The story of two gangs, told while it happens; its facts; and whether it went as it should."""

import asyncio
import json
import sys
import time
from dataclasses import asdict, dataclass, field
from typing import Final

from jobset_gate.cli.demo.display import Display, display_for
from jobset_gate.cli.demo.podgroup_environment import PodGroupEnvironment, pod_group_environment
from jobset_gate.cli.demo.podgroup_scenario import GANGS, PodGroupPlan
from jobset_gate.cli.demo.podgroup_view import PodGroupRow, line
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.logs import configure
from jobset_gate.cli.options import LogFormat, LogLevel

_OLDER, _YOUNGER = GANGS
_LACKS: Final = "needs "
"""What a group says that has no room."""


@dataclass(slots=True)
class PodGroupDemoResult:
    """The demo in one line."""

    minimum: int
    """Pods that each gang needs."""
    room: int
    """Pods for which there is room."""
    bound_without_us: dict[str, int] = field(default_factory=dict)
    """By gang, after so long that nothing moves any more."""
    finished_with_us: list[str] = field(default_factory=list)
    """In order."""
    bound_too_early: int = 0
    """Pods of the younger gang that were bound while the older one still needed its room."""
    reason: str = ""
    """Why the younger gang waited, in its own words."""
    seconds: float = 0.0


async def demo(plan: PodGroupPlan, *, as_json: bool, speed: float) -> ExitCode:
    """Plays the whole demo. With JSON the story goes to standard error and one line of facts to standard output."""
    configure(LogFormat.AUTO, LogLevel.ERROR)
    screen = display_for(sys.stderr if as_json else sys.stdout, speed)
    facts, began = PodGroupDemoResult(minimum=plan.size, room=plan.room), time.monotonic()
    try:
        wrong = await _play(plan, screen, facts, speed)
    except asyncio.CancelledError:
        screen.say("interrupted")
        raise
    facts.seconds = round(time.monotonic() - began, 2)
    screen.say(f"That took {facts.seconds:.0f} s.")
    for each in wrong:
        screen.say(f"WRONG: {each}")
    if as_json:
        print(json.dumps(asdict(facts)), flush=True)
    return ExitCode.ERROR if wrong else ExitCode.OK


async def _play(plan: PodGroupPlan, screen: Display, facts: PodGroupDemoResult, speed: float) -> list[str]:
    for text in _opening(plan, speed):
        screen.say(text)
    screen.say()
    screen.say("1. Without jobset-gate")
    async with pod_group_environment(plan, ours=False) as its:
        wrong = await _without(plan, its, screen, facts)
    screen.say()
    screen.say("2. With jobset-gate: the same pods once more")
    async with pod_group_environment(plan, ours=True) as its:
        screen.say(f"   Webhook ({its.door}) and controller are what runs in a cluster.")
        wrong += await _with(plan, its, screen, facts)
    screen.say()
    return wrong


def _opening(plan: PodGroupPlan, speed: float) -> list[str]:
    cluster = f"{plan.nodes} nodes with {plan.gpus} GPUs each, {plan.room} in all"
    return [
        "API server, scheduler and kubelets are stand-ins in this process; the scheduler goes about it pod by pod, as",
        f"kube-scheduler does. The cluster's time is simulated and passes {speed:g} times as fast as yours.",
        "",
        f"Two gangs, {_OLDER} and {_YOUNGER}: {plan.size} pods each, one GPU per pod. {cluster}:",
        "there is room for one gang at a time. A gang works only while all of its pods run. Their pods are created",
        f"alternately: {_OLDER}-0, {_YOUNGER}-0, {_OLDER}-1 and so on.",
    ]


async def _without(
    plan: PodGroupPlan, its: PodGroupEnvironment, screen: Display, facts: PodGroupDemoResult
) -> list[str]:
    """Neither gang gets together."""
    watcher = its.watcher
    async with screen.following(watcher.rows, line):
        await its.create_pods()
        got_together = await watcher.until(lambda: any(row.complete for row in watcher.rows()), plan.watched)
    rows = watcher.rows()
    facts.bound_without_us = {row.name: row.bound for row in rows}
    if got_together:
        return ["a gang got together without us: there was no deadlock to show"]
    reached = ", ".join(f"{row.name} {row.bound}/{row.expected}" for row in rows)
    taken = sum(row.bound for row in rows)
    screen.say(f"   After {plan.watched / 60:g} minutes: {reached}. Neither can work and neither lets go:")
    screen.say(f"   {taken} of {plan.room} GPUs are taken for nothing. The scheduler says of the other pods:")
    screen.say(f"   {watcher.scheduler_says(_YOUNGER)}")
    return [] if taken == plan.room else [f"{taken} of {plan.room} GPUs were taken: that is no deadlock"]


async def _with(plan: PodGroupPlan, its: PodGroupEnvironment, screen: Display, facts: PodGroupDemoResult) -> list[str]:
    """One gang after the other, each as a whole."""
    watcher = its.watcher

    def row(gang: str) -> PodGroupRow:
        return watcher.row(gang)

    def finished(gang: str) -> bool:
        if gang == _OLDER and not row(_OLDER).finished:
            facts.bound_too_early = max(facts.bound_too_early, row(_YOUNGER).bound)
        return row(gang).finished

    async with screen.following(watcher.rows, line):
        await its.create_pods()
        told = await watcher.until_said(_YOUNGER, _LACKS, plan.patience)
        facts.reason = row(_YOUNGER).why if told else ""
        screen.say(f"   {_YOUNGER} says why it waits: {facts.reason}")
        for gang in GANGS:
            if await watcher.until(lambda gang=gang: finished(gang), plan.patience):  # type: ignore[misc]
                facts.finished_with_us.append(gang)
    if not (wrong := _mistakes(facts)):
        screen.say(f"   {_OLDER} was opened as a whole and did its work. {_YOUNGER} took nothing meanwhile, and was")
        screen.say(f"   opened as a whole when {_OLDER} was done.")
    return wrong


def _mistakes(facts: PodGroupDemoResult) -> list[str]:
    wrong = [f"gang {gang} did not finish" for gang in GANGS if gang not in facts.finished_with_us]
    if facts.bound_too_early:
        wrong.append(f"{facts.bound_too_early} pods of gang {_YOUNGER} were bound before there was room for all of it")
    if not facts.reason:
        wrong.append(f"gang {_YOUNGER} did not say why it waited")
    return wrong
