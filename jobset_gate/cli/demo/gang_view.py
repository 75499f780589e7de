"""Follows the gangs as anybody could: by watching JobSets, pods and ConfigMaps, with a stop-watch in hand."""

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
    """What was seen of one gang so far. Times are of the event loop's clock, in seconds."""

    name: str
    jobset: JobSetSeen | None = None
    verdict: Verdict | None = None
    decided_at: float | None = None
    last_start_at: float | None = None
    mains_at: float | None = None
    """When the latest main container was seen to run."""
    early: int = 0
    """Main containers that were seen to run while a pod had not started."""
    pods: dict[str, PodSeen] = field(default_factory=dict)

    @property
    def expected(self) -> int:
        """Pods of the gang; 0 until its JobSet was seen."""
        return sum(job.expected for job in self.jobset.targets) if self.jobset else 0

    @property
    def started(self) -> int:
        """Pods whose barrier runs or has let them pass."""
        return sum(pod.started for pod in self.pods.values())

    @property
    def running(self) -> int:
        """Pods whose main containers run."""
        return sum(pod.main_since is not None for pod in self.pods.values())

    @property
    def failed(self) -> int:
        """Pods whose barrier has ended them."""
        return sum(pod.stage is BarrierStage.FAILED for pod in self.pods.values())

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
    """`async with Watcher(client, gangs) as watcher`: `watcher.sights` grow while it runs."""

    def __init__(self, client: Client, gangs: tuple[str, ...], namespace: str) -> None:
        self.sights = {name: GangProgress(name) for name in gangs}
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
                    CONFIGMAPS, wire.ConfigMap, decode.config_map, self._gate, namespace=namespace, label_selector=ours
                ),
            ),
        )
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        self._tasks = [asyncio.create_task(informer.run()) for informer in self._informers]
        try:
            for informer in self._informers:
                await informer.wait_synced()
        except BaseException:  # told to stop meanwhile
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def until(self, holds: Callable[[], bool], seconds: float) -> bool:
        """Wait for something to be true of the sights; False if it was not within so many seconds."""
        try:
            async with asyncio.timeout(seconds):
                while not holds():
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _jobset(self, change: ObjectChange[JobSetSeen]) -> None:
        sight = self.sights.get(change.key[1])
        if sight is not None:
            sight.jobset = change.new
            self._changed.set()

    def _pod(self, change: ObjectChange[PodSeen]) -> None:
        pod = change.new or change.old
        sight = self.sights.get(pod.gang) if pod else None
        if pod is None or sight is None:
            return
        now, before = _now(), change.old
        if change.new is None:
            sight.pods.pop(pod.name, None)
        else:
            sight.pods[pod.name] = pod
        if change.new is not None and pod.started and not (before and before.started):
            sight.last_start_at = now
        if change.new is not None and pod.main_since is not None and not (before and before.main_since):
            sight.mains_at = now
            sight.early += sight.verdict is None and sight.started < sight.expected
        self._changed.set()

    def _gate(self, change: ObjectChange[ConfigMapSeen]) -> None:
        sight = self.sights.get(change.new.gang) if change.new else None
        if sight is None or change.new is None or change.new.verdict is None or sight.verdict is not None:
            return
        sight.verdict, sight.decided_at = change.new.verdict, _now()
        self._changed.set()


def _now() -> float:
    return asyncio.get_running_loop().time()
