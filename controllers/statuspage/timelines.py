"""Pods and timelines. The cache does not hold the times of pods, so they are listed: seldom, and few at once."""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, Final

import msgspec

from controllers.statuspage.pods import PodList, pod_list
from controllers.statuspage.source import PageSource
from jobset_gate import names
from jobset_gate.barrier import messages, wire
from jobset_gate.barrier.model import (
    GangKey,
    GangSnapshot,
    Generation,
    PendingCause,
    Verdict,
    VerdictKind,
    WorkloadSeen,
)
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.objects.caches import BoundedCache, TTLCache
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.sources.table import SOURCES
from jobset_gate.timeline import decode, gang
from jobset_gate.timeline.model import PodTimeline, Timeline
from jobset_gate.timeline.summary import idle_devices
from jobset_gate.timeline.svg import Drawing, Window, drawing_svg, make_drawing

PAGE: Final = 500
TTL: Final = 5.0
"""Seconds for which a timeline is cached; one that took long to make is cached for TTL_FACTOR times as long."""
TTL_FACTOR: Final = 10
MAX_CACHED: Final = 32
MAX_CONCURRENT: Final = 2
MAX_TASKS: Final = 32
"""More gangs that time out than that wait for their next event, so that viewers need not wait."""
MAX_TIMEOUT_BYTES: Final = 16 * 1024 * 1024
"""Of all timelines of timeouts, some thousand of usual size."""
AT_TIMEOUT: Final = "seen when the gang was ended; pods that went afterwards are shown as they were then"

Build = Callable[[Iterable[PodTimeline], float], Timeline]
"""The timeline of these pods at a Unix time."""
Pending = Mapping[str, PendingCause]
"""What pods wait for, by their names."""


class GangTimeline(msgspec.Struct, frozen=True, kw_only=True):
    """What the page shows of the pods of a gang; bounded, however many there are."""

    drawing: Drawing
    pods: PodList


class TimelineRenderer:
    """Lists the pods of gangs and pod groups, and draws them."""

    def __init__(self, client: Client, source: PageSource, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._client, self._source, self._monotonic = client.without_retries(), source, monotonic
        self._cache: TTLCache[str, GangTimeline] = TTLCache(MAX_CACHED, monotonic)
        self.tasks: dict[str, asyncio.Task[Any]] = {}
        """Timelines that are being made, or wait for that."""
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._timeouts: BoundedCache[tuple[GangKey, Generation], bytes] = BoundedCache(MAX_TIMEOUT_BYTES)

    def on_gang_change(self, key: GangKey, jobset: WorkloadSeen | None, verdict: Verdict | None) -> None:
        """Makes the timeline of a gang that times out while its pods exist: within seconds they go."""
        if jobset is None or jobset.finished or jobset.deleting:
            return
        generation = timed_out_generation(jobset, verdict)
        if generation is None or (key, generation) in self._timeouts:
            return
        name = f"timeout of {key.source} {key}"
        if name not in self.tasks and len(self.tasks) < MAX_TASKS:
            self._start(name, self._make_timeout(key, generation))

    async def of_gang(self, seen: GangSnapshot) -> GangTimeline:
        """Of a gang; after a timeout as it was then. Raises KubeError if its pods cannot be listed."""
        key, generation = seen.workload.key, timed_out_generation(seen.workload, seen.stored_verdict)
        if generation is not None and (kept := self._timeouts.get((key, generation))) is not None:
            return msgspec.msgpack.decode(kept, type=GangTimeline)
        return await self._cached(f"{key.source} {key}", lambda: self._of_gang(seen))

    async def of_pod_group(self, report: GroupStatus) -> GangTimeline:
        """Of a pod group. Raises KubeError if its pods cannot be listed."""
        scope = ListScope(PODS, report.key.namespace, f"{names.POD_GROUP_LABEL}={report.label}")

        def build(pods: Iterable[PodTimeline], now: float) -> Timeline:
            return gang.pod_group_timeline(report, pods, now)

        return await self._cached(f"group {report.label}", lambda: self._make(scope, build, {}))

    async def svg(self, timeline: GangTimeline, window: Window | None) -> bytes:
        """The picture, or a window of it."""
        async with self._slots:
            return (await asyncio.to_thread(drawing_svg, timeline.drawing, window)).encode()

    async def stop(self) -> None:
        """Cancels what is being made."""
        tasks = list(self.tasks.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _cached(self, name: str, make: Callable[[], Coroutine[Any, Any, GangTimeline]]) -> GangTimeline:
        if (cached := self._cache.get(name)) is not None:
            return cached[0]
        task = self.tasks.get(name) or self._start(name, self._make_cached(name, make))
        made: GangTimeline = await asyncio.shield(task)
        return made

    def _start(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task = self.tasks[name] = asyncio.create_task(work, name=name)
        task.add_done_callback(lambda it: self._done(name, it))
        return task

    def _done(self, name: str, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(name, None)
        if not task.cancelled():
            task.exception()  # the viewer may have gone: then the exception is dropped

    async def _make_cached(self, name: str, make: Callable[[], Coroutine[Any, Any, GangTimeline]]) -> GangTimeline:
        async with self._slots:
            begin = self._monotonic()
            made = await make()
            self._cache.put(name, made, max(TTL, (self._monotonic() - begin) * TTL_FACTOR))
        return made

    async def _make_timeout(self, key: GangKey, generation: Generation) -> None:
        """From the snapshot at the time when a slot is free."""
        async with self._slots:
            seen = self._source.index.peek(key)
            if seen is None or timed_out_generation(seen.workload, seen.stored_verdict) != generation or not seen.pods:
                return
            encoded = msgspec.msgpack.encode(await self._of_gang(seen, AT_TIMEOUT))
        self._timeouts.put((key, generation), encoded, len(encoded))

    async def _of_gang(self, seen: GangSnapshot, *notes: str) -> GangTimeline:
        workload, key = seen.workload, seen.workload.key
        scope = ListScope(PODS, key.namespace, SOURCES[key.source].pods_selector(key.name))

        def build(pods: Iterable[PodTimeline], now: float) -> Timeline:
            return gang.gang_timeline(workload, seen.config_map, decode.pods_of_gang(seen, pods), now, notes)

        return await self._make(scope, build, {pod.name: pod.pending for pod in seen.pods if pod.pending is not None})

    async def _make(self, scope: ListScope, build: Build, pending: Pending) -> GangTimeline:
        """In a thread: thousands of pods take a while, and the event loop is the controller's."""
        pods = list_objects(self._client, scope, wire.MemberPod, PAGE, on_unreadable=lambda _: None)
        timed = [decode.decode_pod(pod) async for pod in pods]
        return await asyncio.to_thread(self._reduce, build, timed, pending)

    def _reduce(self, build: Build, pods: Iterable[PodTimeline], pending: Pending) -> GangTimeline:
        made = build(pods, self._source.clock())
        drawing = make_drawing(made, idle_devices(made, self._source.prices))
        return GangTimeline(drawing=drawing, pods=pod_list((*made.pods, *made.replacements), pending))


def timed_out_generation(jobset: WorkloadSeen, verdict: Verdict | None) -> Generation | None:
    """The present generation if it was given up, by the ConfigMap's verdict or else by our condition."""
    condition = jobset.condition
    if verdict is None and condition is not None and condition.status == "False":
        verdict = messages.verdict_in_condition(condition, jobset.uid)
    if verdict is None or verdict.kind is not VerdictKind.TIMEOUT:
        return None
    present = Generation(jobset.uid, jobset.attempt, jobset.epoch)
    return verdict.generation if verdict.generation.covers(present) else None
