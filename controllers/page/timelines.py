"""Pictures of starts. Times of pods are not in the cache, so the pods are read for them: seldom, and few at once."""

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from controllers.keys import Key
from controllers.page.last_pictures import LastPictures, timed_out
from jobset_gate import names, timeline_group, timeline_make, timeline_read
from jobset_gate.groups.report import Report
from jobset_gate.kube.client import Client
from jobset_gate.kube.listwatch import Scope, pages
from jobset_gate.kube.reader import Bare, Reader
from jobset_gate.kube.resources import PODS
from jobset_gate.model import GangSeen, Generation, JobSetSeen, Verdict
from jobset_gate.picture import picture
from jobset_gate.timeline import PodTimes, Timeline
from jobset_gate.timeline_sums import idle

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

Make = Callable[[list[PodTimes], float], Timeline]
"""Of pods, at a moment."""


class Timelines:
    """Pictures as bytes of SVG. `clock`: seconds since the epoch."""

    def __init__(
        self,
        client: Client,
        look: Callable[[Key], GangSeen | None],
        clock: Callable[[], float],
        patience: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client, self._look = client.impatient(), look
        self._clock, self._patience = clock, patience
        self._kept: OrderedDict[str, tuple[float, bytes]] = OrderedDict()
        self._under_way: dict[str, asyncio.Task[bytes]] = {}
        self._room = asyncio.Semaphore(AT_ONCE)
        self._last = LastPictures()

    def touched(self, key: Key, jobset: JobSetSeen | None, verdict: Verdict | None) -> None:
        """Something of this gang is different. Of one that times out, the picture is taken while its pods are there."""
        if jobset is None:
            self._last.drop(key)
            return
        its = timed_out(jobset, verdict)
        if its is None or jobset.finished or jobset.deleting or self._last.of(key, its) is not None:
            return
        name = f"last of {key}"
        if name not in self._under_way and len(self._under_way) < MOST_AT_ONCE:
            task = self._under_way[name] = asyncio.create_task(self._keep(key, its), name="last timeline")
            task.add_done_callback(lambda it: self._done(name, it))

    async def of_gang(self, key: Key, seen: GangSeen) -> bytes:
        """Of a JobSet's gang; once it has timed out, as it was then. Raises KubeError where its pods cannot be read."""
        last = self._last.of(key, timed_out(seen.jobset, _verdict(seen)))
        if last is not None:
            return last
        return await self._svg(f"gang {key}", _scope(key), _maker(seen))

    async def of_group(self, report: Report) -> bytes:
        """Of a pod group."""
        scope = Scope(PODS, report.key.namespace, f"{names.GANG}={report.label}")
        return await self._svg(f"group {report.label}", scope, lambda pods, now: timeline_group.make(report, pods, now))

    @property
    def under_way(self) -> int:
        """Pictures that are being drawn, or wait for that."""
        return len(self._under_way)

    @property
    def kept_bytes(self) -> int:
        """Of pictures of gangs that timed out."""
        return self._last.bytes

    async def stop(self) -> None:
        """Nobody waits any more."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _svg(self, key: str, scope: Scope, make: Make) -> bytes:
        kept = self._kept.get(key)
        if kept is not None and kept[0] > self._patience():
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

    async def _read(self, key: str, scope: Scope, make: Make) -> bytes:
        async with self._room:
            begin = self._patience()
            drawn = await self._draw(scope, make)
            took = self._patience() - begin
        self._kept[key] = (self._patience() + max(KEPT, took * SHARE), drawn)
        self._kept.move_to_end(key)
        while len(self._kept) > MOST:
            self._kept.popitem(last=False)
        return drawn

    async def _keep(self, key: Key, its: Generation) -> bytes:
        """With what is known of the gang by the time that others' pictures leave room for this one."""
        async with self._room:
            seen = self._look(key)
            if seen is None or timed_out(seen.jobset, _verdict(seen)) != its or not seen.pods:
                return b""
            drawn = await self._draw(_scope(key), _maker(seen, AS_IT_WAS))
        if self._look(key) is not None:
            self._last.keep(key, its, drawn)
        return drawn

    async def _draw(self, scope: Scope, make: Make) -> bytes:
        """Drawing thousands of pods takes a while, and the event loop is the controller's."""
        return await asyncio.to_thread(_drawn, make, await self._pods(scope), self._clock())

    async def _pods(self, scope: Scope) -> list[PodTimes]:
        reader = Reader(timeline_read.Pod, lambda _, __: None)
        found = []
        async for items, _ in pages(self._client, scope, PAGE):
            for raw in items:
                pod = reader.object(raw)
                if pod is not None and not isinstance(pod, Bare):
                    found.append(timeline_read.pod(pod))
            await asyncio.sleep(0)
        return found


def _verdict(seen: GangSeen) -> Verdict | None:
    return None if seen.gate is None else seen.gate.verdict


def _scope(key: Key) -> Scope:
    return Scope(PODS, key.namespace, f"{names.GATED}={names.GATED_VALUE},{names.JS_NAME}={key.name}")


def _maker(seen: GangSeen, *notes: str) -> Make:
    return lambda pods, now: timeline_make.make(seen.jobset, seen.gate, pods, now, notes)


def _drawn(make: Make, pods: list[PodTimes], now: float) -> bytes:
    timeline = make(pods, now)
    return picture(timeline, idle(timeline)).encode()
