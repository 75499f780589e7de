"""The demo of the start barrier: one gang is released when its last pod has started, another one times out."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

from controllers.barrier import crd_patcher
from controllers.manager import ManagerOptions
from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.serve import process
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.settings import Settings
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.cluster import Actors, embedded_cluster
from jobset_gate_demo.fake.kubelet import Behaviour, FakeNode, PodFault, PodMatch
from jobset_gate_demo.frame import DemoEnvironment, Display, environment, play
from jobset_gate_demo.gang_view import GangProgress, GangWatcher

NAMESPACE: Final = "default"
TRAIN: Final = "train"
"""The gang whose nodes come late."""
STUCK: Final = "stuck"
"""The gang with two pods that cannot start."""

_POOL: Final = "pool"
_WAVES: Final = (0.4, 0.75, 1.0)
"""The part of the first gang's pods that has a node after each wave."""
_LARGEST_NODE: Final = 50
_NO_GPU: Final = "0/3 nodes are available: 3 Insufficient nvidia.com/gpu."
_FETCH: Final = "fetch-data"
_PATIENCE: Final = 30.0

BEHAVIOUR: Final = Behaviour(sandbox_seconds=0.2, pull_seconds=0.2, init_seconds=0.2, spread=0.4)
"""Kubelets in a hurry, but a ConfigMap takes a minute to reach a pod, as it does in a cluster."""

STUCK_NODES: Final = tuple(FakeNode(f"cpu-{number}", pods=4, labels={_POOL: STUCK}) for number in range(3))
FAULTS: Final = (
    PodFault(PodMatch(f"{STUCK}-*", replicated_job="workers", job_index=0, index=2), image_pull_backoff=_FETCH),
    PodFault(PodMatch(f"{STUCK}-*", replicated_job="workers", job_index=1, index=1), unschedulable=_NO_GPU),
)
MISSING: Final = ("workers-0/2", "workers-1/1")
"""The slots of those faults, as a verdict names them."""


@dataclass(frozen=True, slots=True)
class GangPlan:
    """How large and how long the demo is."""

    jobs: int = 3
    pods: int = 100
    seconds: float = 8.0
    """From the first gang's creation to the arrival of its last nodes."""

    @property
    def size(self) -> int:
        """Pods of the first gang."""
        return self.jobs * self.pods

    @property
    def timeout(self) -> int:
        """Seconds that the second gang waits."""
        return max(2, math.ceil(self.seconds / 2))

    @property
    def patience(self) -> float:
        """Seconds after which the demo stops waiting for a gang."""
        return self.seconds + self.size / 20 + _PATIENCE

    def waves(self) -> Iterator[tuple[float, list[FakeNode]]]:
        """The nodes of the first gang: (seconds after its creation, nodes)."""
        ready = 0
        for number, part in enumerate(_WAVES):
            room = max(0, round(self.size * part) - ready)
            ready += room
            count = math.ceil(room / _LARGEST_NODE)
            sizes = (room // count + (index < room % count) for index in range(count))
            nodes = [
                FakeNode(f"gpu-{number}-{index}", pods=size, labels={_POOL: TRAIN}) for index, size in enumerate(sizes)
            ]
            yield self.seconds * number / (len(_WAVES) - 1), nodes

    def train(self) -> dict[str, Any]:
        """The JobSet of the first gang; its timeout is longer than the demo."""
        workers = manifests.replicated_job(
            replicas=self.jobs, parallelism=self.pods, pod={"nodeSelector": {_POOL: TRAIN}}
        )
        return manifests.jobset(
            TRAIN, NAMESPACE, replicated_jobs=[workers], config={names.TIMEOUT_FIELD: math.ceil(self.patience) + 300}
        )

    def stuck(self) -> dict[str, Any]:
        """The JobSet of the second gang: 1 + 2 x 4 pods; two of them never start."""
        pod = {"nodeSelector": {_POOL: STUCK}, "restartPolicy": "Never"}
        fetch = manifests.container(_FETCH, "registry.example/fetch-data:v7")
        jobs = [
            manifests.replicated_job("driver", pod=pod),
            manifests.replicated_job("workers", replicas=2, parallelism=4, pod=pod, init_containers=[fetch]),
        ]
        return manifests.jobset(STUCK, NAMESPACE, replicated_jobs=jobs, config={names.TIMEOUT_FIELD: self.timeout})


async def demo(plan: GangPlan) -> ExitCode:
    """Plays the whole demo."""
    return await play(partial(_play, plan))


async def _play(plan: GangPlan, display: Display) -> Sequence[str]:
    clock = asyncio.get_running_loop()
    started = clock.time()
    process.raise_open_files_limit()  # both ends of every barrier's request are in this process
    async with environment(embedded_cluster(nodes=STUCK_NODES, behaviour=BEHAVIOUR)) as demo:
        for fault in FAULTS:
            demo.cluster.kubelets.inject_fault(fault)
        await crd_patcher.extend_crd(demo.client)
        options = ManagerOptions(namespace=NAMESPACE, identity="demo", port=0, stream_port=0)
        url = await demo.start_jobset_gate(options, Settings(), lambda manager: manager.streaming.wait())
        watcher = GangWatcher(demo.client, (TRAIN, STUCK), NAMESPACE)
        for view in watcher.views:
            await demo.stack.enter_async_context(view)
        demo.stop_cluster_first()
        display.say("API server, JobSet and Job controllers, scheduler and kubelets are stand-ins in this process;")
        display.say(f"webhook ({url}) and controller are what runs in a cluster.")
        mistakes = await _train(plan, demo, watcher, display)
        mistakes += await _stuck(plan, demo, watcher, display)
        gangs = watcher.gangs.values()
    pods, kinds = sum(it.expected for it in gangs), [it.verdict.kind for it in gangs if it.verdict is not None]
    ended = f"{kinds.count(VerdictKind.RELEASE)} released, {kinds.count(VerdictKind.TIMEOUT)} timed out"
    display.say()
    display.say(f"In {clock.time() - started:.1f} s: {len(gangs)} gangs, {pods} pods, {ended}.")
    return mistakes


async def _train(plan: GangPlan, demo: DemoEnvironment, watcher: GangWatcher, display: Display) -> list[str]:
    """The gang whose nodes come in three waves."""
    display.say()
    size = f"{_many(plan.jobs, 'Job')} x {_many(plan.pods, 'pod')}"
    display.say(f"1. Gang {TRAIN}: {size}; its nodes join in three waves over {plan.seconds:g} s.")
    display.say("   No main container may start before all pods have.")
    gang = watcher.gangs[TRAIN]
    demo.tasks.start("nodes", _join_nodes(plan, demo.cluster))
    async with display.following(gang.rows):
        await demo.cluster.client.create(JOBSETS, plan.train(), NAMESPACE)
        await watcher.until(lambda: plan.size == gang.running, plan.patience)
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
    async with display.following(gang.rows):
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


async def _join_nodes(plan: GangPlan, cluster: Actors) -> None:
    clock = asyncio.get_running_loop()
    began = clock.time()
    for after, nodes in plan.waves():
        await asyncio.sleep(began + after - clock.time())
        for node in nodes:
            await cluster.kubelets.add_node(node)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
