"""The progress of the gangs, from watches on JobSets, pods and ConfigMaps, with times."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, Self

from jobset_gate import names
from jobset_gate.barrier import decode, wire
from jobset_gate.barrier.model import BarrierStage, ConfigMapSeen, JobSetSeen, PodSeen, Verdict
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS, PODS
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange

_NUMBERS: Final = ("expected", "started", "held", "running", "failed")


@dataclass(frozen=True, slots=True)
class JobRow:
    """The pods of one Job, counted."""

    name: str
    expected: int
    started: int
    """Pods whose barrier has begun, however it ended."""
    held: int
    running: int
    failed: int

    @property
    def done(self) -> int:
        """How far the bar goes."""
        return self.started

    @property
    def counts(self) -> str:
        """All numbers."""
        failed = f", {self.failed} failed" if self.failed else ""
        return f"{self.started}/{self.expected} started, {self.held} held, {self.running} running{failed}"


def line(rows: Sequence[JobRow]) -> str:
    """All Jobs in one line."""
    if not rows:
        return ""
    total = JobRow("", *(sum(getattr(row, name) for row in rows) for name in _NUMBERS))
    return f"{total.counts} ({', '.join(f'{row.name} {row.started}/{row.expected}' for row in rows)})"


@dataclass(slots=True)
class GangProgress:
    """One gang, as watched so far. Times are of the event loop's clock, in seconds."""

    name: str
    jobset: JobSetSeen | None = None
    verdict: Verdict | None = None
    decided_at: float | None = None
    last_start_at: float | None = None
    mains_at: float | None = None
    """When the latest main container was reported as running."""
    early: int = 0
    """Main containers that ran before all pods had started."""
    pods: dict[str, PodSeen] = field(default_factory=dict)

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
        return sum(pod.main_since is not None for pod in self.pods.values())

    @property
    def failed(self) -> int:
        """Pods whose barrier has failed."""
        return sum(pod.stage is BarrierStage.FAILED for pod in self.pods.values())

    @property
    def latency(self) -> float | None:
        """Seconds from the last pod's start to the verdict."""
        if self.verdict is None or self.decided_at is None or self.last_start_at is None:
            return None
        return self.decided_at - self.last_start_at

    @property
    def patched(self) -> int:
        """Pods that carry their verdict as an annotation."""
        return sum(bool(pod.verdict) for pod in self.pods.values())

    def rows(self) -> list[JobRow]:
        """One for each Job."""
        if self.jobset is None:
            return []
        return [
            self._row(job.name, number, job.pods_per_job)
            for job in self.jobset.targets
            for number in range(job.replicas)
        ]

    def _row(self, job: str, number: int, expected: int) -> JobRow:
        pods = [pod for pod in self.pods.values() if (pod.replicated_job, pod.job_index) == (job, number)]
        return JobRow(
            name=f"{job}-{number}",
            expected=expected,
            started=sum(pod.stage is not BarrierStage.WAITING for pod in pods),
            held=sum(pod.stage is BarrierStage.RUNNING for pod in pods),
            running=sum(pod.main_since is not None for pod in pods),
            failed=sum(pod.stage is BarrierStage.FAILED for pod in pods),
        )


class GangWatcher:
    """`async with GangWatcher(client, gangs, namespace) as watcher`; it keeps `watcher.gangs` up to date."""

    def __init__(self, client: Client, gangs: tuple[str, ...], namespace: str) -> None:
        self.gangs = {name: GangProgress(name) for name in gangs}
        self._changed = asyncio.Event()
        gated, ours = f"{names.GATED}={names.GATED_VALUE}", f"{names.GATE}={names.GATE_VALUE}"
        self._informers = (
            Informer(client, WatchSource(JOBSETS, wire.JobSet, decode.jobset, self._jobset, namespace=namespace)),
            Informer(
                client, WatchSource(PODS, wire.Pod, decode.pod, self._pod, namespace=namespace, label_selector=gated)
            ),
            Informer(
                client,
                WatchSource(
                    CONFIGMAPS,
                    wire.ConfigMap,
                    decode.config_map,
                    self._config_map,
                    namespace=namespace,
                    label_selector=ours,
                ),
            ),
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(informer.run()) for informer in self._informers]
        try:
            for informer in self._informers:
                await informer.wait_synced()
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

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

    def _jobset(self, change: ObjectChange[JobSetSeen]) -> None:
        gang = self.gangs.get(change.key[1])
        if gang is not None:
            gang.jobset = change.new
            self._changed.set()

    def _pod(self, change: ObjectChange[PodSeen]) -> None:
        pod = change.new or change.old
        gang = self.gangs.get(pod.gang) if pod else None
        if pod is None or gang is None:
            return
        now, before = _now(), change.old
        if change.new is None:
            gang.pods.pop(pod.name, None)
        else:
            gang.pods[pod.name] = pod
        if change.new is not None and pod.started and not (before and before.started):
            gang.last_start_at = now
        if change.new is not None and pod.main_since is not None and not (before and before.main_since):
            gang.mains_at = now
            gang.early += gang.verdict is None and gang.started < gang.expected
        self._changed.set()

    def _config_map(self, change: ObjectChange[ConfigMapSeen]) -> None:
        gang = self.gangs.get(change.new.gang) if change.new else None
        if gang is None or change.new is None or change.new.verdict is None or gang.verdict is not None:
            return
        gang.verdict, gang.decided_at = change.new.verdict, _now()
        self._changed.set()


def _now() -> float:
    return asyncio.get_running_loop().time()
