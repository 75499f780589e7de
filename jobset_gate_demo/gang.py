"""The demo of the start barrier: one gang is released when its last pod has started, another one times out."""

import asyncio
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

from controllers.barrier import crd_patcher
from controllers.manager import ManagerOptions
from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import BarrierStage, PodSeen, Verdict, VerdictKind, WorkloadSeen
from jobset_gate.cli.exits import ExitCode
from jobset_gate.cli.serve import process
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.settings import Settings
from jobset_gate.sources import decode
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.cluster import Actors, embedded_cluster
from jobset_gate_demo.fake.kubelet import Behaviour, FakeNode, PodFault, PodMatch
from jobset_gate_demo.frame import NAMESPACE, DemoEnvironment, Display, Json, ProgressRow, Watcher, environment, play

TRAIN: Final = "train"
"""The gang whose nodes come late."""
STUCK: Final = "stuck"
"""The gang with two pods that cannot start."""

_POOL: Final = "pool"
_WAVES: Final = (0.4, 0.75, 1.0)
"""The part of the first gang's pods that has a node after each wave."""
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

    def waves(self) -> Iterator[tuple[float, FakeNode]]:
        """The nodes of the first gang, each with the seconds after its creation."""
        ready = 0
        for number, part in enumerate(_WAVES):
            room = round(self.size * part) - ready
            ready += room
            node = FakeNode(f"gpu-{number}", pods=room, labels={_POOL: TRAIN})
            yield self.seconds * number / (len(_WAVES) - 1), node

    def train(self) -> Json:
        """The JobSet of the first gang; its timeout is longer than the demo."""
        workers = manifests.replicated_job(
            replicas=self.jobs, parallelism=self.pods, pod={"nodeSelector": {_POOL: TRAIN}}
        )
        return manifests.jobset(
            TRAIN, NAMESPACE, replicated_jobs=[workers], config={names.TIMEOUT_FIELD: math.ceil(self.patience) + 300}
        )

    def stuck(self) -> Json:
        """The JobSet of the second gang: 1 + 2 x 4 pods; two of them never start."""
        pod = {"nodeSelector": {_POOL: STUCK}, "restartPolicy": "Never"}
        fetch = manifests.container(_FETCH, "registry.example/fetch-data:v7")
        jobs = [
            manifests.replicated_job("driver", pod=pod),
            manifests.replicated_job("workers", replicas=2, parallelism=4, pod=pod, init_containers=[fetch]),
        ]
        return manifests.jobset(STUCK, NAMESPACE, replicated_jobs=jobs, config={names.TIMEOUT_FIELD: self.timeout})


# --- What is watched --------------------------------------------------------------------------------------------------


class GangProgress:
    """One gang, as watched so far. Times are of the event loop's clock, in seconds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.jobset: WorkloadSeen | None = None
        self.verdict: Verdict | None = None
        self.decided_at: float | None = None
        self.last_start_at: float | None = None
        self.mains_at: float | None = None
        """When the latest main container was reported as running."""
        self.early = 0
        """Main containers that ran before all pods had started."""
        self.pods: dict[str, PodSeen] = {}

    @property
    def expected(self) -> int:
        """Pods of the gang; 0 until its JobSet was seen."""
        return sum(job.expected for job in self.jobset.targets) if self.jobset else 0

    @property
    def started(self) -> int:
        """Pods whose barrier runs or has ended with success."""
        return sum(pod.started for pod in self.pods.values())

    @property
    def running(self) -> int:
        """Pods whose main containers run."""
        return sum(map(_runs, self.pods.values()))

    @property
    def failed(self) -> int:
        """Pods whose barrier has failed."""
        return sum(pod.stage is BarrierStage.FAILED for pod in self.pods.values())

    @property
    def latency(self) -> float | None:
        """Seconds from the last pod's start to the verdict."""
        if self.decided_at is None or self.last_start_at is None:
            return None
        return self.decided_at - self.last_start_at

    @property
    def patched(self) -> int:
        """Pods that carry their verdict as an annotation."""
        return sum(bool(pod.verdict) for pod in self.pods.values())

    def rows(self) -> list[ProgressRow]:
        """One for each Job."""
        targets = self.jobset.targets if self.jobset else ()
        return [self._row(job.name, number, job.pods_per_job) for job in targets for number in range(job.replicas)]

    def _row(self, job: str, number: int, expected: int) -> ProgressRow:
        """Pods whose barrier has begun, however it ended, and all numbers."""
        pods = [pod for pod in self.pods.values() if (pod.replicated_job, pod.job_index) == (job, number)]
        stages = [pod.stage for pod in pods]
        begun = len(stages) - stages.count(BarrierStage.WAITING)
        held, failed = stages.count(BarrierStage.RUNNING), stages.count(BarrierStage.FAILED)
        counts = f"{begun}/{expected} started, {held} held, {sum(map(_runs, pods))} running"
        return ProgressRow(f"{job}-{number}", begun, expected, counts + (f", {failed} failed" if failed else ""))

    def on_pod(self, pod: PodSeen) -> None:
        """A new version of a pod; one that is being deleted counts no longer."""
        if pod.deleting:
            self.pods.pop(pod.name, None)
            return
        now, before = asyncio.get_running_loop().time(), self.pods.get(pod.name)
        self.pods[pod.name] = pod
        if pod.started and not (before and before.started):
            self.last_start_at = now
        if _runs(pod) and not (before and _runs(before)):
            self.mains_at = now
            self.early += self.verdict is None and self.started < self.expected

    def on_verdict(self, verdict: Verdict) -> None:
        """The first one counts."""
        if self.verdict is None:
            self.verdict, self.decided_at = verdict, asyncio.get_running_loop().time()


class GangWatcher(Watcher):
    """Keeps `gangs` up to date."""

    def __init__(self, client: Client, names_: tuple[str, ...]) -> None:
        super().__init__(client)
        self.gangs = {name: GangProgress(name) for name in names_}
        self.watch(JOBSETS, wire.JobSet, self._on_jobset)
        self.watch(PODS, wire.Pod, self._on_pod, f"{names.GATED}={names.GATED_VALUE}")
        self.watch(CONFIGMAPS, wire.ConfigMap, self._on_config_map, f"{names.GATE}={names.GATE_VALUE}")

    def _on_jobset(self, jobset: wire.JobSet) -> None:
        if gang := self.gangs.get(jobset.metadata.name):
            gang.jobset = decode.jobset(jobset)

    def _on_pod(self, seen: wire.Pod) -> None:
        pod = decode.pod(seen)
        if gang := self.gangs.get(pod.gang):
            gang.on_pod(pod)

    def _on_config_map(self, config_map: wire.ConfigMap) -> None:
        seen = decode.config_map(config_map)
        if seen is not None and seen.verdict is not None and (gang := self.gangs.get(seen.gang)):
            gang.on_verdict(seen.verdict)


def _runs(pod: PodSeen) -> bool:
    return pod.main_since is not None


# --- The story --------------------------------------------------------------------------------------------------------


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
        watcher = GangWatcher(demo.client, (TRAIN, STUCK))
        await watcher.start(demo.tasks)
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
    for after, node in plan.waves():
        await asyncio.sleep(began + after - clock.time())
        await cluster.kubelets.add_node(node)


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"
