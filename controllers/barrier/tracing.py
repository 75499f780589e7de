"""Makes the trace of each gang that this process decided on: of a release once its pods run, of a timeout at once.

A pod's times are in its status and in its kubelet's Events, which the cache does not hold, so they are listed then.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

import msgspec
import structlog

from controllers.barrier.cache import GangCache
from controllers.barrier.metrics import main_starts
from jobset_gate.barrier import wire
from jobset_gate.barrier.decision import Decide
from jobset_gate.barrier.events import CoreEvent
from jobset_gate.barrier.model import ConfigMapSeen, GangKey, GangSnapshot, VerdictKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import EVENTS, PODS
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.runtime.workqueue import WorkQueue
from jobset_gate.timeline import decode
from jobset_gate.timeline.gang import gang_timeline
from jobset_gate.timeline.model import PodTimeline
from jobset_gate.timeline.pulls import PULLED, read_pulls
from jobset_gate.timeline.trace import Trace, gang_trace

POLL_SECONDS: Final = 2.0
SETTLE_SECONDS: Final = 300.0
"""A trace is made this long after its verdict at the latest, though pods do not run yet."""
MAX_PENDING: Final = 1000
"""Gangs whose trace is still to be made."""
MAX_EVENTS: Final = 5000
"""Events that are read for the times of image pulls."""
WORKERS: Final = 2

_log = structlog.get_logger(__name__)


class TraceExporter(Protocol):
    """Sends traces away."""

    def export(self, trace: Trace) -> None:
        """Queues it; neither blocks nor raises."""

    def stop(self) -> None:
        """Sends what is queued, for a few seconds. Blocks."""


@dataclass(frozen=True, slots=True)
class _Decided:
    decision: Decide
    at: float
    seen: GangSnapshot
    """With pods only where nothing else tells which pods the gang has."""


class GangTracer:
    """`on_decided` is called by the reconciler; `reconcile` is the work of a controller of its own on `queue`."""

    def __init__(
        self,
        cache: GangCache,
        client: Client,
        queue: WorkQueue[GangKey],
        exporter: TraceExporter,
        now: Callable[[], float],
    ) -> None:
        self._cache, self._client, self._queue = cache, client, queue
        self._exporter, self._now = exporter, now
        self._pending: dict[GangKey, _Decided] = {}

    def on_decided(self, key: GangKey, seen: GangSnapshot, decision: Decide) -> None:
        """This process wrote a verdict."""
        if len(self._pending) >= MAX_PENDING:
            _log.warning("no trace is made: too many gangs wait for theirs", pending=len(self._pending))
            return
        if not seen.workload.source.gates_pods:
            seen = msgspec.structs.replace(seen, pods=())
        self._pending[key] = _Decided(decision, self._now(), seen)
        self._queue.add(key)

    async def reconcile(self, key: GangKey) -> float | None:
        """Makes the gang's trace, or returns the seconds until it should be tried again."""
        decided = self._pending.get(key)
        if decided is None:
            return None
        overdue = self._now() >= decided.at + SETTLE_SECONDS
        if not overdue and self._is_starting(key, decided):
            return POLL_SECONDS
        if overdue:
            del self._pending[key]  # this is the last attempt, however it ends
        try:
            self._exporter.export(await self._trace(key, decided))
        except KubeError as error:
            if not overdue:
                return POLL_SECONDS
            _log.warning("no trace is made: its pods cannot be listed", error=str(error))
        if self._pending.get(key) is decided:
            del self._pending[key]
        return None

    def _is_starting(self, key: GangKey, decided: _Decided) -> bool:
        """True while the released generation exists, and not all of its main containers have started."""
        seen, then = self._cache.peek(key), decided.seen.workload
        if decided.decision.verdict.kind is not VerdictKind.RELEASE or seen is None or seen.workload.finished:
            return False
        now = seen.workload
        return (now.uid, now.attempt, now.epoch) == (then.uid, then.attempt, then.epoch) and main_starts(seen) is None

    async def _trace(self, key: GangKey, decided: _Decided) -> Trace:
        mine = ListScope(PODS, key.namespace, decided.seen.workload.source.pods_selector(key.name))
        client = self._client.without_retries()
        found = [pod async for pod in list_objects(client, mine, wire.MemberPod, on_unreadable=lambda _: None)]
        pulls = await self._pulls(client, key.namespace, {pod.metadata.uid for pod in found})
        timed = [decode.decode_pod(pod, pulls.get(pod.metadata.uid)) for pod in found]
        pods = decode.pods_of_gang(decided.seen, timed)
        return await asyncio.to_thread(self._convert, decided, pods)

    def _convert(self, decided: _Decided, pods: list[PodTimeline]) -> Trace:
        """In a thread: thousands of pods take a while."""
        workload, decision = decided.seen.workload, decided.decision
        stored = ConfigMapSeen(
            namespace=workload.namespace,
            name=workload.source.config_map_name(workload.name),
            uid="",
            resource_version="",
            source=workload.source.name,
            gang=workload.name,
            workload_uid=workload.uid,
            verdict=decision.verdict,
            waiting_since=decision.clock,
            canonical=True,
        )
        timeline = gang_timeline(workload, stored, pods, self._now())
        return gang_trace(timeline, decision.verdict, decided.at, workload.config.timeout)

    async def _pulls(self, client: Client, namespace: str, pods: set[str]) -> dict[str, dict[str, float]]:
        """When images were there, as far as the first Events of the namespace tell."""
        found: dict[str, dict[str, float]] = {}
        scope = ListScope(EVENTS, namespace, field_selector=PULLED)
        events = list_objects(client, scope, CoreEvent, on_unreadable=lambda _: None)
        try:
            await read_pulls(events, pods, found, MAX_EVENTS)
        except KubeError as error:
            _log.warning("events not read, the trace says less", error=str(error))
        return found
