"""The demo of the start barrier: one gang is released when its last pod has started, another one times out."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from controllers.barrier import crd_patcher
from controllers.manager import ManagerOptions
from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.cli.demo.display import Display
from jobset_gate.cli.demo.environment import DemoEnvironment, environment
from jobset_gate.cli.demo.frame import play
from jobset_gate.cli.demo.gang_scenario import (
    BEHAVIOUR,
    FAULTS,
    MISSING,
    NAMESPACE,
    STUCK,
    STUCK_NODES,
    TRAIN,
    GangPlan,
)
from jobset_gate.cli.demo.gang_view import GangProgress, GangWatcher, line
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.serve import process
from jobset_gate.fake.cluster import EmbeddedCluster
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.settings import Settings


@dataclass(frozen=True, slots=True)
class GangDemoResult:
    """The demo in numbers."""

    gangs: int
    pods: int
    released: int
    timed_out: int
    seconds: float
    decision_latency_seconds: float | None
    """From the last pod's start to the verdict in the ConfigMap, both as a watch shows them; None: no release. Below 0
    where the pods' requests on the gate stream came before their kubelets' reports."""
    patched: int
    """Pods of the released gang that were patched: they had no stream at the decision, or were slow to pass."""


async def demo(plan: GangPlan, *, as_json: bool) -> ExitCode:
    """Plays the whole demo."""

    async def story(display: Display) -> tuple[GangDemoResult, Sequence[str]]:
        return await _play(plan, display)

    return await play(story, as_json=as_json)


async def _play(plan: GangPlan, display: Display) -> tuple[GangDemoResult, Sequence[str]]:
    clock = asyncio.get_running_loop()
    started = clock.time()
    process.raise_open_files_limit()  # both ends of every barrier's request are in this process
    async with environment(EmbeddedCluster(nodes=STUCK_NODES, behaviour=BEHAVIOUR)) as demo:
        for fault in FAULTS:
            demo.cluster.kubelets.inject_fault(fault)
        await crd_patcher.extend_crd(demo.client)
        options = ManagerOptions(namespace=NAMESPACE, identity="demo", port=0, stream_port=0)
        url = await demo.start_jobset_gate(options, Settings(), lambda manager: manager.streaming.wait())
        watcher = await demo.stack.enter_async_context(GangWatcher(demo.client, (TRAIN, STUCK), NAMESPACE))
        demo.stop_cluster_first()
        display.say("API server, JobSet and Job controllers, scheduler and kubelets are stand-ins in this process;")
        display.say(f"webhook ({url}) and controller are what runs in a cluster.")
        mistakes = await _train(plan, demo, watcher, display)
        mistakes += await _stuck(plan, demo, watcher, display)
        gangs = list(watcher.gangs.values())
    result = _result(gangs, clock.time() - started)
    display.say()
    display.say(
        f"In {result.seconds:.1f} s: {result.gangs} gangs, {result.pods} pods, {result.released} released,"
        f" {result.timed_out} timed out."
    )
    return result, mistakes


async def _train(plan: GangPlan, demo: DemoEnvironment, watcher: GangWatcher, display: Display) -> list[str]:
    """The gang whose nodes come in three waves."""
    display.say()
    size = f"{_many(plan.jobs, 'Job')} x {_many(plan.pods, 'pod')}"
    display.say(f"1. Gang {TRAIN}: {size}; its nodes join in three waves over {plan.seconds:g} s.")
    display.say("   No main container may start before all pods have.")
    gang = watcher.gangs[TRAIN]
    nodes = asyncio.create_task(_join_nodes(plan, demo.cluster))
    try:
        async with display.following(gang.rows, line):
            await demo.cluster.client.create(JOBSETS, plan.train(), NAMESPACE)
            await watcher.until(lambda: plan.size == gang.running, plan.patience)
    finally:
        nodes.cancel()
        await asyncio.gather(nodes, return_exceptions=True)
    mistakes = []
    if gang.verdict is None or gang.verdict.kind is not VerdictKind.RELEASE:
        mistakes.append(f"gang {TRAIN} was not released: {gang.started}/{plan.size} pods started")
    if gang.early:
        mistakes.append(f"gang {TRAIN}: {gang.early} main containers ran before all pods had started")
    if gang.running < plan.size:
        mistakes.append(f"gang {TRAIN}: {gang.running}/{plan.size} main containers run")
    if not mistakes:
        _print_release(gang, display)
    return mistakes


def _print_release(gang: GangProgress, display: Display) -> None:
    latency = (gang.latency or 0.0) * 1000
    when = "before" if latency < 0 else f"{latency:.0f} ms after"
    spread = (gang.mains_at or 0.0) - (gang.decided_at or 0.0)
    display.say(f"   Released: {gang.verdict.message if gang.verdict else ''}.")
    display.say(f"   Decided {when} the last start was reported; all main containers ran {spread:.1f} s later.")
    display.say(f"   {gang.patched} of {len(gang.pods)} pods were patched; to the others the gate stream was enough.")


async def _stuck(plan: GangPlan, demo: DemoEnvironment, watcher: GangWatcher, display: Display) -> list[str]:
    """The gang that cannot start."""
    gang = watcher.gangs[STUCK]
    display.say()
    display.say(
        f"2. Gang {STUCK}: 9 pods, and two of them cannot start; it waits for {plan.timeout} s, then fails as one."
    )
    async with display.following(gang.rows, line):
        await demo.cluster.client.create(JOBSETS, plan.stuck(), NAMESPACE)
        await watcher.until(lambda: _has_failed(gang), plan.timeout + plan.patience)
    message = gang.verdict.message if gang.verdict else ""
    if gang.verdict is None or gang.verdict.kind is not VerdictKind.TIMEOUT:
        return [f"gang {STUCK} did not time out: {message or 'no verdict'}"]
    mistakes = [f"gang {STUCK}: the verdict does not name {slot}: {message}" for slot in MISSING if slot not in message]
    if not _has_failed(gang):
        mistakes.append(f"gang {STUCK}: its JobSet has not failed, or does not say why")
    if gang.mains_at is not None:
        mistakes.append(f"gang {STUCK}: main containers ran")
    display.say(f"   {message[:1].upper()}{message[1:]}.")
    display.say(
        f"   Its barriers ended with exit code {names.EXIT_TIMED_OUT} and this text, and the JobSet failed with them."
    )
    return mistakes


def _has_failed(gang: GangProgress) -> bool:
    """The JobSet has failed with our reason, and barriers have ended."""
    if gang.jobset is None or gang.jobset.condition is None:
        return False
    timed_out = gang.jobset.condition.reason == names.REASON_TIMED_OUT
    return timed_out and gang.jobset.finished and gang.failed > 0


async def _join_nodes(plan: GangPlan, cluster: EmbeddedCluster) -> None:
    clock = asyncio.get_running_loop()
    began = clock.time()
    for after, nodes in plan.waves():
        await asyncio.sleep(began + after - clock.time())
        for node in nodes:
            await cluster.kubelets.add_node(node)


def _result(gangs: Sequence[GangProgress], seconds: float) -> GangDemoResult:
    kinds = [gang.verdict.kind for gang in gangs if gang.verdict is not None]
    latency = next((gang.latency for gang in gangs if gang.name == TRAIN), None)
    return GangDemoResult(
        gangs=len(gangs),
        pods=sum(gang.expected for gang in gangs),
        released=kinds.count(VerdictKind.RELEASE),
        timed_out=kinds.count(VerdictKind.TIMEOUT),
        seconds=round(seconds, 2),
        decision_latency_seconds=None if latency is None else round(latency, 4),
        patched=sum(gang.patched for gang in gangs if gang.name == TRAIN),
    )


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
