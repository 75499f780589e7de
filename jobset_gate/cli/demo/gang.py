"""The demo's story, told while it happens; its facts; and whether it went as it should."""

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.cli.demo.display import Display, display_for
from jobset_gate.cli.demo.environment import GangEnvironment, gang_environment
from jobset_gate.cli.demo.gang_scenario import MISSING, NAMESPACE, STUCK, TRAIN, GangPlan
from jobset_gate.cli.demo.gang_view import GangProgress, line
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.logs import configure
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.kube.resources import JOBSETS


@dataclass(frozen=True, slots=True)
class GangDemoResult:
    """The demo in one line."""

    gangs: int
    pods: int
    released: int
    timed_out: int
    seconds: float
    decision_latency_seconds: float | None
    """From the last pod's start to the verdict in the ConfigMap, both as a watch shows them; None: no release. Below 0
    where the pods' own word on the gate stream came before their kubelets' reports."""
    patched: int
    """Pods of the released gang that were patched: they had no stream at the decision, or were long in passing."""


async def demo(plan: GangPlan, *, as_json: bool) -> ExitCode:
    """Plays the whole demo. With JSON the story goes to standard error and one line of facts to standard output."""
    configure(LogFormat.AUTO, LogLevel.ERROR)
    screen = display_for(sys.stderr if as_json else sys.stdout)
    try:
        facts, wrong = await _play(plan, screen)
    except asyncio.CancelledError:
        screen.say("interrupted")
        raise
    for each in wrong:
        screen.say(f"WRONG: {each}")
    if as_json:
        print(json.dumps(asdict(facts)), flush=True)
    return ExitCode.ERROR if wrong else ExitCode.OK


async def _play(plan: GangPlan, screen: Display) -> tuple[GangDemoResult, Sequence[str]]:
    clock = asyncio.get_running_loop()
    began = clock.time()
    async with gang_environment() as its:
        screen.say("API server, JobSet and Job controllers, scheduler and kubelets are stand-ins in this process;")
        screen.say(f"webhook ({its.door}) and controller are what runs in a cluster.")
        wrong = await _train(plan, its, screen)
        wrong += await _stuck(plan, its, screen)
        sights = list(its.watcher.sights.values())
    facts = _facts(sights, clock.time() - began)
    screen.say()
    screen.say(
        f"In {facts.seconds:.1f} s: {facts.gangs} gangs, {facts.pods} pods, {facts.released} released,"
        f" {facts.timed_out} timed out."
    )
    return facts, wrong


async def _train(plan: GangPlan, its: GangEnvironment, screen: Display) -> list[str]:
    """The gang whose nodes come in three waves."""
    screen.say()
    size = f"{_many(plan.jobs, 'Job')} x {_many(plan.pods, 'pod')}"
    screen.say(f"1. Gang {TRAIN}: {size}; its nodes join in three waves over {plan.seconds:g} s.")
    screen.say("   No main container may start before all pods have.")
    sight = its.watcher.sights[TRAIN]
    nodes = asyncio.create_task(_nodes(plan, its))
    try:
        async with screen.following(sight.rows, line):
            await its.cluster.client.create(JOBSETS, plan.train(), NAMESPACE)
            await its.watcher.until(lambda: plan.size == sight.running, plan.patience)
    finally:
        nodes.cancel()
        await asyncio.gather(nodes, return_exceptions=True)
    wrong = []
    if sight.verdict is None or sight.verdict.kind is not VerdictKind.RELEASE:
        wrong.append(f"gang {TRAIN} was not released: {sight.started}/{plan.size} pods started")
    if sight.early:
        wrong.append(f"gang {TRAIN}: {sight.early} main containers ran before all pods had started")
    if sight.running < plan.size:
        wrong.append(f"gang {TRAIN}: {sight.running}/{plan.size} main containers run")
    if not wrong:
        _tell_release(sight, screen)
    return wrong


def _tell_release(sight: GangProgress, screen: Display) -> None:
    latency = (_latency(sight) or 0.0) * 1000
    when = "before" if latency < 0 else f"{latency:.0f} ms after"
    spread = (sight.mains_at or 0.0) - (sight.decided_at or 0.0)
    screen.say(f"   Released: {sight.verdict.message if sight.verdict else ''}.")
    screen.say(f"   Decided {when} the last start was reported; all main containers ran {spread:.1f} s later.")
    screen.say(f"   {sight.patched} of {len(sight.pods)} pods were patched; to the others the gate stream was enough.")


async def _stuck(plan: GangPlan, its: GangEnvironment, screen: Display) -> list[str]:
    """The gang that cannot start."""
    sight = its.watcher.sights[STUCK]
    screen.say()
    screen.say(f"2. Gang {STUCK}: 9 pods, two of which cannot start; it waits for {plan.timeout} s, then fails as one.")
    async with screen.following(sight.rows, line):
        await its.cluster.client.create(JOBSETS, plan.stuck(), NAMESPACE)
        await its.watcher.until(lambda: _over(sight), plan.timeout + plan.patience)
    message = sight.verdict.message if sight.verdict else ""
    if sight.verdict is None or sight.verdict.kind is not VerdictKind.TIMEOUT:
        return [f"gang {STUCK} did not time out: {message or 'no verdict'}"]
    wrong = [f"gang {STUCK}: the verdict does not name {slot}: {message}" for slot in MISSING if slot not in message]
    if not _over(sight):
        wrong.append(f"gang {STUCK}: its JobSet has not failed, or does not say why")
    if sight.mains_at is not None:
        wrong.append(f"gang {STUCK}: main containers ran")
    screen.say(f"   {message[:1].upper()}{message[1:]}.")
    screen.say(
        f"   Its barriers ended with exit code {names.EXIT_TIMED_OUT} and this text, and the JobSet failed with them."
    )
    return wrong


def _over(sight: GangProgress) -> bool:
    """The JobSet has failed and says why, and barriers have obeyed."""
    if sight.jobset is None or sight.jobset.condition is None:
        return False
    told = sight.jobset.condition.reason == names.REASON_TIMED_OUT
    return told and sight.jobset.finished and sight.failed > 0


async def _nodes(plan: GangPlan, its: GangEnvironment) -> None:
    clock = asyncio.get_running_loop()
    began = clock.time()
    for after, nodes in plan.waves():
        await asyncio.sleep(began + after - clock.time())
        for node in nodes:
            await its.cluster.kubelets.add_node(node)


def _latency(sight: GangProgress) -> float | None:
    if sight.verdict is None or sight.decided_at is None or sight.last_start_at is None:
        return None
    return sight.decided_at - sight.last_start_at


def _facts(sights: Sequence[GangProgress], seconds: float) -> GangDemoResult:
    kinds = [sight.verdict.kind for sight in sights if sight.verdict is not None]
    latency = next((_latency(sight) for sight in sights if sight.name == TRAIN), None)
    return GangDemoResult(
        gangs=len(sights),
        pods=sum(sight.expected for sight in sights),
        released=kinds.count(VerdictKind.RELEASE),
        timed_out=kinds.count(VerdictKind.TIMEOUT),
        seconds=round(seconds, 2),
        decision_latency_seconds=None if latency is None else round(latency, 4),
        patched=sum(sight.patched for sight in sights if sight.name == TRAIN),
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
