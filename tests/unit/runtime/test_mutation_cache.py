"""Our own writes in a running informer: in order with its watch and its lists."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from aiohttp import web

from jobset_gate.kube.client import Client
from tests.fakes.informer_harness import SampleMeta, SampleObject, running_informer, same_as
from tests.fakes.scripted_server import Answer, Json, ScriptedServer, abort_connection, refusal


def response(event: Json) -> SampleObject:
    """The object of an event, as the response to the request that caused it."""
    meta = event["object"]["metadata"]
    return SampleObject(
        SampleMeta(meta["name"], meta["namespace"], meta["uid"], meta["resourceVersion"]), data=event["object"]["data"]
    )


@pytest.mark.parametrize("end", [abort_connection, refusal(410)])
async def test_an_object_of_ours_that_was_lost_before_the_watch_reported_it_is_missed_by_a_list(
    server: ScriptedServer, client: Client, end: Answer
) -> None:
    async with running_informer(client, relist_seconds=60.0) as watched:
        await server.watched()
        watched.informer.store.observe_object(response(server.put("a", "1", tell=False)))
        assert watched.values == {"a": "1"}
        server.drop("a", tell=False)
        server.watches.append(end)
        server.close_watches()
        await watched.sees()
        assert watched.changes == [("a", "1", None)]


class DelayedList:
    """A list that was made before `act` and arrives after it."""

    def __init__(self, server: ScriptedServer, act: Callable[[], None]) -> None:
        self._server, self._act = server, act

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        answer = await self._server.list(request)
        self._act()
        return answer


async def relisted(server: ScriptedServer, act: Callable[[], None]) -> None:
    """Makes the informer list again while `act` happens, and watch again."""
    lists, watches = server.count("list"), server.count("watch")
    server.lists.append(DelayedList(server, act))
    server.watches.append(refusal(410))
    server.close_watches()
    await server.until(lambda: server.count("list") > lists)
    await server.watched(watches + 2)


@pytest.mark.parametrize("seed", range(8))
async def test_any_order_of_writes_events_and_lists_ends_with_the_present_state(
    server: ScriptedServer, client: Client, seed: int
) -> None:
    """Our writes and others'; responses and events in any order; lists in between."""
    rng = random.Random(seed)  # noqa: S311 - it must repeat
    async with running_informer(client) as watched:
        await server.watched()
        late: list[Callable[[], object]] = []
        cache = watched.informer.store

        def write() -> None:
            name = rng.choice("abc")
            seen = rng.random() < 0.7
            if name in server.objects and rng.random() < 0.4:
                known = cache.version_of(("ns", name))
                server.drop(name, tell=seen)
                if rng.random() < 0.5:
                    late.append(lambda: cache.observe_absence(("ns", name), known))
                return
            event = server.put(name, str(server.version), tell=seen)
            if rng.random() < 0.7:
                late.append(lambda: cache.observe_object(response(event)))

        for _ in range(12):
            for _ in range(rng.randint(1, 4)):
                write()
            while late and rng.random() < 0.6:
                late.pop(rng.randrange(len(late)))()
            await asyncio.sleep(rng.choice((0.0, 0.1, 5.0)))
            if rng.random() < 0.5:
                await relisted(server, write)
        while late:
            late.pop()()
        await relisted(server, lambda: None)
        await watched.sees(**same_as(server))
