"""Pictures of starts. Times of pods are not in the cache, so the pods are read for them: seldom, and few at once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from controllers.statuspage.timeout_timelines import TimeoutTimelines, timed_out_generation
from jobset_gate import names
from jobset_gate.barrier.model import GangKey, GangSnapshot, Generation, JobSetSeen, Verdict
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.decoder import ObjectDecoder, PartialObjectMetadata
from jobset_gate.runtime.paging import ListScope, list_pages
from jobset_gate.timeline import decode, gang, podgroup
from jobset_gate.timeline.model import PodTimeline, Timeline
from jobset_gate.timeline.svg import timeline_svg
from jobset_gate.timeline.totals import idle_devices

PAGE: Final = 500
KEPT: Final = 5.0
"""Seconds for which a picture is good; one that took long to read is good for longer."""
SHARE: Final = 10
MOST: Final = 64
"""Pictures kept."""
AT_ONCE: Final = 2
MOST_AT_ONCE: Final = 32
"""Pictures to be drawn; more gangs that time out than that wait for their next event, so that viewers need not."""
AS_IT_WAS: Final = "seen when its time was up; pods that went afterwards are shown as they were then"

Make = Callable[[list[PodTimeline], float], Timeline]
"""Of pods, at a moment."""


class TimelineRenderer:
    """Pictures as bytes of SVG. `clock`: seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        look: Callable[[GangKey], GangSnapshot | None],
        clock: Callable[[], float],
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._look = client.without_retries(), look
        self._clock, self._monotonic = clock, monotonic
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[bytes]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._timeouts = TimeoutTimelines()

    def on_gang_change(self, key: GangKey, jobset: JobSetSeen | None, verdict: Verdict | None) -> None:
        """Something of this gang is different. Of one that times out, the picture is taken while its pods are there."""
        if jobset is None:
            self._timeouts.drop(key)
            return
        its = timed_out_generation(jobset, verdict)
        if its is None or jobset.finished or jobset.deleting or self._timeouts.of(key, its) is not None:
            return
        name = f"last of {key}"
        if name not in self._under_way and len(self._under_way) < MOST_AT_ONCE:
            task = self._under_way[name] = asyncio.create_task(self._render_timeout(key, its), name="last timeline")
            task.add_done_callback(lambda it: self._done(name, it))

    async def gang_svg(self, key: GangKey, seen: GangSnapshot) -> bytes:
        """Of a JobSet's gang; once it has timed out, as it was then. Raises KubeError where its pods cannot be read."""
        last = self._timeouts.of(key, timed_out_generation(seen.jobset, _verdict(seen)))
        if last is not None:
            return last
        return await self._svg(f"gang {key}", _scope(key), _maker(seen))

    async def pod_group_svg(self, report: GroupStatus) -> bytes:
        """Of a pod group."""
        scope = ListScope(PODS, report.key.namespace, f"{names.POD_GROUP_LABEL}={report.label}")
        return await self._svg(
            f"group {report.label}", scope, lambda pods, now: podgroup.pod_group_timeline(report, pods, now)
        )

    @property
    def under_way(self) -> int:
        """Pictures that are being drawn, or wait for that."""
        return len(self._under_way)

    @property
    def kept_bytes(self) -> int:
        """Of pictures of gangs that timed out."""
        return self._timeouts.bytes

    async def stop(self) -> None:
        """Nobody waits any more."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _svg(self, key: str, scope: ListScope, make: Make) -> bytes:
        kept = self._kept.get(key)
        if kept is not None and kept[0] > self._monotonic():
            return kept[1]
        task = self._under_way.get(key)
        if task is None:
            task = self._under_way[key] = asyncio.create_task(self._read(key, scope, make), name="timeline")
            task.add_done_callback(lambda it: self._done(key, it))
        return await asyncio.shield(task)

    def _done(self, key: str, task: asyncio.Task[bytes]) -> None:
        self._under_way.pop(key, None)
        if not task.cancelled():
            task.exception()  # whoever has asked may be gone: nobody is told then

    async def _read(self, key: str, scope: ListScope, make: Make) -> bytes:
        async with self._room:
            begin = self._monotonic()
            drawn = await self._draw(scope, make)
            took = self._monotonic() - begin
        self._kept[key] = (self._monotonic() + max(KEPT, took * SHARE), drawn)
        self._kept.move_to_end(key)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return drawn

    async def _render_timeout(self, key: GangKey, its: Generation) -> bytes:
        """With what is known of the gang by the time that others' pictures leave room for this one."""
        async with self._room:
            seen = self._look(key)
            if seen is None or timed_out_generation(seen.jobset, _verdict(seen)) != its or not seen.pods:
                return b""
            drawn = await self._draw(_scope(key), _maker(seen, AS_IT_WAS))
        if self._look(key) is not None:
            self._timeouts.keep(key, its, drawn)
        return drawn

    async def _draw(self, scope: ListScope, make: Make) -> bytes:
        """Drawing thousands of pods takes a while, and the event loop is the controller's."""
        return await asyncio.to_thread(_drawn, make, await self._pods(scope), self._clock())

    async def _pods(self, scope: ListScope) -> list[PodTimeline]:
        reader = ObjectDecoder(decode.TimedPod, lambda _, __: None)
        found = []
        async for items, _ in list_pages(self._client, scope, PAGE):
            for raw in items:
                pod = reader.decode_object(raw)
                if pod is not None and not isinstance(pod, PartialObjectMetadata):
                    found.append(decode.decode_pod(pod))
            await asyncio.sleep(0)
        return found


def _verdict(seen: GangSnapshot) -> Verdict | None:
    return None if seen.config_map is None else seen.config_map.verdict


def _scope(key: GangKey) -> ListScope:
    return ListScope(PODS, key.namespace, f"{names.GATED}={names.GATED_VALUE},{names.JS_NAME}={key.name}")


def _maker(seen: GangSnapshot, *notes: str) -> Make:
    return lambda pods, now: gang.gang_timeline(seen.jobset, seen.config_map, pods, now, notes)


def _drawn(make: Make, pods: list[PodTimeline], now: float) -> bytes:
    timeline = make(pods, now)
    return timeline_svg(timeline, idle_devices(timeline)).encode()
