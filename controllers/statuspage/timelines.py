"""Timelines as SVG. The cache does not hold the times of pods, so pods are listed for them: seldom, and few at once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Coroutine
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import GangKey, GangSnapshot, Generation, JobSetSeen, Verdict, VerdictKind
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.objects.caches import TTLCache
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.timeline import decode, gang, podgroup
from jobset_gate.timeline.model import PodTimeline, Timeline
from jobset_gate.timeline.summary import idle_devices
from jobset_gate.timeline.svg import timeline_svg

PAGE: Final = 500
TTL: Final = 5.0
"""Seconds for which a timeline is cached; one that took long to render is cached for TTL_FACTOR times as long."""
TTL_FACTOR: Final = 10
MAX_CACHED: Final = 64
MAX_CONCURRENT: Final = 2
MAX_RENDERING: Final = 32
"""More gangs that time out than that wait for their next event, so that viewers need not wait."""
MAX_TIMEOUT_BYTES: Final = 16 * 1024 * 1024
"""Of all timelines of timeouts, some thousand of usual size. The oldest is dropped first."""
AT_TIMEOUT: Final = "seen when its time was up; pods that went afterwards are shown as they were then"

Build = Callable[[list[PodTimeline], float], Timeline]
"""The timeline of these pods at a Unix time."""


class TimelineRenderer:
    """Timelines as bytes of SVG. `clock`: Unix time."""

    def __init__(
        self,
        client: Client,
        snapshot: Callable[[GangKey], GangSnapshot | None],
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._snapshot = client.without_retries(), snapshot
        self._clock, self._monotonic = clock, monotonic
        self._cache: TTLCache[str, bytes] = TTLCache(MAX_CACHED, monotonic)
        self._rendering: dict[str, asyncio.Task[bytes]] = {}
        self._slots = asyncio.Semaphore(MAX_CONCURRENT)
        self._timeouts = TimeoutTimelines()

    def on_gang_change(self, key: GangKey, jobset: JobSetSeen | None, verdict: Verdict | None) -> None:
        """Renders the timeline of a gang that times out while its pods exist."""
        if jobset is None:
            self._timeouts.drop(key)
            return
        generation = timed_out_generation(jobset, verdict)
        if generation is None or jobset.finished or jobset.deleting or self._timeouts.get(key, generation) is not None:
            return
        name = f"timeout of {key}"
        if name not in self._rendering and len(self._rendering) < MAX_RENDERING:
            self._start(name, self._render_timeout(key, generation))

    async def gang_svg(self, key: GangKey, seen: GangSnapshot) -> bytes:
        """A gang's timeline; after a timeout the one of that time. Raises KubeError if its pods cannot be listed."""
        cached = self._timeouts.get(key, timed_out_generation(seen.jobset, _verdict(seen)))
        return await self._svg(f"gang {key}", _scope(key), _builder(seen)) if cached is None else cached

    async def pod_group_svg(self, report: GroupStatus) -> bytes:
        """A pod group's timeline. Raises KubeError if its pods cannot be listed."""
        scope = ListScope(PODS, report.key.namespace, f"{names.POD_GROUP_LABEL}={report.label}")
        return await self._svg(
            f"group {report.label}", scope, lambda pods, now: podgroup.pod_group_timeline(report, pods, now)
        )

    @property
    def rendering(self) -> int:
        """Timelines that are being rendered, or wait for that."""
        return len(self._rendering)

    @property
    def timeout_bytes(self) -> int:
        """Bytes of the timelines of timeouts."""
        return self._timeouts.bytes

    async def stop(self) -> None:
        """Cancels what is being rendered."""
        tasks = list(self._rendering.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _svg(self, name: str, scope: ListScope, build: Build) -> bytes:
        cached = self._cache.get(name)
        if cached is not None:
            return cached[0]
        task = self._rendering.get(name) or self._start(name, self._render_cached(name, scope, build))
        return await asyncio.shield(task)

    def _start(self, name: str, work: Coroutine[Any, Any, bytes]) -> asyncio.Task[bytes]:
        task = self._rendering[name] = asyncio.create_task(work, name=name)
        task.add_done_callback(lambda it: self._done(name, it))
        return task

    def _done(self, name: str, task: asyncio.Task[bytes]) -> None:
        self._rendering.pop(name, None)
        if not task.cancelled():
            task.exception()  # the viewer may have gone: then the exception is dropped

    async def _render_cached(self, name: str, scope: ListScope, build: Build) -> bytes:
        async with self._slots:
            begin = self._monotonic()
            svg = await self._render(scope, build)
            took = self._monotonic() - begin
        self._cache.put(name, svg, max(TTL, took * TTL_FACTOR))
        return svg

    async def _render_timeout(self, key: GangKey, generation: Generation) -> bytes:
        """From the snapshot at the time when a slot is free."""
        async with self._slots:
            seen = self._snapshot(key)
            if seen is None or timed_out_generation(seen.jobset, _verdict(seen)) != generation or not seen.pods:
                return b""
            svg = await self._render(_scope(key), _builder(seen, AT_TIMEOUT))
        if self._snapshot(key) is not None:
            self._timeouts.put(key, generation, svg)
        return svg

    async def _render(self, scope: ListScope, build: Build) -> bytes:
        """In a thread: thousands of pods take a while, and the event loop is the controller's."""
        pods = list_objects(self._client, scope, decode.TimedPod, PAGE, on_unreadable=lambda _: None)
        timed = [decode.decode_pod(pod) async for pod in pods]
        return await asyncio.to_thread(_render_svg, build, timed, self._clock())


class TimeoutTimelines:
    """The timeline of each gang that timed out, as it was then: its JobSet fails within seconds, and its pods go.

    By gang, of the generation that timed out; dropped with its JobSet, or with its next generation.
    """

    def __init__(self) -> None:
        self._svgs: OrderedDict[GangKey, tuple[Generation, bytes]] = OrderedDict()
        self.bytes = 0

    def get(self, key: GangKey, generation: Generation | None) -> bytes | None:
        """None if there is none of this generation."""
        found = self._svgs.get(key)
        return found[1] if found is not None and found[0] == generation else None

    def put(self, key: GangKey, generation: Generation, svg: bytes) -> None:
        """Replaces that of an earlier generation."""
        self.drop(key)
        self._svgs[key] = generation, svg
        self.bytes += len(svg)
        while self.bytes > MAX_TIMEOUT_BYTES:
            self.drop(next(iter(self._svgs)))

    def drop(self, key: GangKey) -> None:
        """If there is one."""
        found = self._svgs.pop(key, None)
        self.bytes -= 0 if found is None else len(found[1])


def timed_out_generation(jobset: JobSetSeen, verdict: Verdict | None) -> Generation | None:
    """The present generation if it timed out, by the ConfigMap's verdict or else by our condition."""
    condition = jobset.condition
    if verdict is None and condition is not None and condition.reason == names.REASON_TIMED_OUT:
        verdict = messages.verdict_in_condition(condition, jobset.uid)
    if verdict is None or verdict.kind is not VerdictKind.TIMEOUT:
        return None
    present = Generation(jobset.uid, jobset.attempt, jobset.epoch)
    return verdict.generation if verdict.generation.covers(present) else None


def _verdict(seen: GangSnapshot) -> Verdict | None:
    return None if seen.config_map is None else seen.config_map.verdict


def _scope(key: GangKey) -> ListScope:
    return ListScope(PODS, key.namespace, f"{names.GATED}={names.GATED_VALUE},{names.JS_NAME}={key.name}")


def _builder(seen: GangSnapshot, *notes: str) -> Build:
    return lambda pods, now: gang.gang_timeline(seen.jobset, seen.config_map, pods, now, notes)


def _render_svg(build: Build, pods: list[PodTimeline], now: float) -> bytes:
    timeline = build(pods, now)
    return timeline_svg(timeline, idle_devices(timeline)).encode()
