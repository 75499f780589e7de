"""The progress of the gangs, from watches on JobSets, pods and ConfigMaps, with times."""

import asyncio
from collections.abc import Callable, Iterable
from typing import Any, Final, TypeVar

import msgspec

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.barrier.model import BarrierStage, PodSeen, Verdict, WorkloadSeen
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.sources import decode
from jobset_gate_demo.fake.view import ObjectView
from jobset_gate_demo.frame import ProgressRow

Json = dict[str, Any]
T = TypeVar("T")
_GATED: Final = f"{names.GATED}={names.GATED_VALUE}"
_OURS: Final = f"{names.GATE}={names.GATE_VALUE}"


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
        jobs = [(job, number) for job in self.jobset.targets for number in range(job.replicas)] if self.jobset else []
        rows = []
        for job, number in jobs:
            pods = [pod for pod in self.pods.values() if (pod.replicated_job, pod.job_index) == (job.name, number)]
            begun, text = _counts(pods, job.pods_per_job)
            rows.append(ProgressRow(f"{job.name}-{number}", begun, job.pods_per_job, text))
        return rows

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


class GangWatcher:
    """Keeps `gangs` up to date while its `views` are open."""

    def __init__(self, client: Client, gangs: tuple[str, ...], namespace: str) -> None:
        self.gangs = {name: GangProgress(name) for name in gangs}
        self._changed = asyncio.Event()
        self.views = (
            ObjectView(client, JOBSETS, namespace, each=self._on_jobset),
            ObjectView(client, PODS, namespace, _GATED, each=self._on_pod),
            ObjectView(client, CONFIGMAPS, namespace, _OURS, each=self._on_config_map),
        )

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Whether `holds` became true within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _on_jobset(self, body: Json) -> None:
        jobset = decode.jobset(_decoded(body, wire.JobSet))
        if jobset is not None and (gang := self.gangs.get(body["metadata"]["name"])):
            gang.jobset = jobset
            self._changed.set()

    def _on_pod(self, body: Json) -> None:
        pod = decode.pod(_decoded(body, wire.Pod))
        if gang := self.gangs.get(pod.gang):
            gang.on_pod(pod)
            self._changed.set()

    def _on_config_map(self, body: Json) -> None:
        seen = decode.config_map(_decoded(body, wire.ConfigMap))
        if seen is not None and seen.verdict is not None and (gang := self.gangs.get(seen.gang)):
            gang.on_verdict(seen.verdict)
            self._changed.set()


def _decoded(body: Json, kind: type[T]) -> T:
    return msgspec.json.decode(msgspec.json.encode(body), type=kind)


def _runs(pod: PodSeen) -> bool:
    return pod.main_since is not None


def _counts(pods: Iterable[PodSeen], expected: int) -> tuple[int, str]:
    """Pods whose barrier has begun, however it ended, and all numbers."""
    stages = [pod.stage for pod in pods]
    begun = len(stages) - stages.count(BarrierStage.WAITING)
    held, failed = stages.count(BarrierStage.RUNNING), stages.count(BarrierStage.FAILED)
    running = sum(map(_runs, pods))
    shown = f", {failed} failed" if failed else ""
    return begun, f"{begun}/{expected} started, {held} held, {running} running{shown}"
