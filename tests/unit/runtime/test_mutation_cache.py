"""What reads and writes beside the watch have shown is in the cache, in order with what the watch and lists tell."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable

import pytest
from aiohttp import web

from jobset_gate.kube.client import Client
from jobset_gate.runtime.decoder import WatchProblemKind
from jobset_gate.runtime.store import ObjectVersion
from tests.fakes.informer_harness import InformerHarness, SampleMeta, SampleObject, running_informer, same_as
from tests.fakes.scripted_server import Answer, Json, ScriptedServer, abort_connection, refusal


def shown(event: Json) -> SampleObject:
    """The object of an event, as an answer to the one who caused it."""
    meta = event["object"]["metadata"]
    return SampleObject(
        SampleMeta(meta["name"], meta["namespace"], meta["uid"], meta["resourceVersion"]), data=event["object"]["data"]
    )


def version(event: Json) -> ObjectVersion:
    meta = event["object"]["metadata"]
    return ObjectVersion(meta["uid"], meta["resourceVersion"])


async def test_what_was_seen_is_in_the_cache_at_once_and_its_echo_is_no_change(
    server: ScriptedServer, client: Client
) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        made = server.put("a", "1", tell=False)
        assert watched.informer.mutation_cache.observe_object(shown(made)) == "1"
        assert watched.values == {"a": "1"}
        server.send(made)
        server.put("b", "after")
        await watched.sees(a="1", b="after")
        assert watched.changes == [("b", None, "after")]


@pytest.mark.parametrize("end", [abort_connection, refusal(410)])
async def test_an_object_of_ours_that_was_lost_before_the_watch_reported_it_is_missed_by_a_list(
    server: ScriptedServer, client: Client, end: Answer
) -> None:
    async with running_informer(client, relist_seconds=60.0) as watched:
        await server.watched()
        watched.informer.mutation_cache.observe_object(shown(server.put("a", "1", tell=False)))
        server.drop("a", tell=False)
        server.watches.append(end)
        server.close_watches()
        await watched.sees()
        assert watched.changes == [("a", "1", None)]


async def test_the_watch_tells_that_what_we_saw_is_gone(server: ScriptedServer, client: Client) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        watched.informer.mutation_cache.observe_object(shown(server.put("a", "1")))
        server.drop("a")
        await watched.sees()
        assert watched.changes == [("a", "1", None)]


async def test_an_answer_that_is_older_than_the_news_changes_nothing(server: ScriptedServer, client: Client) -> None:
    """It was under way for long, and the watch was quicker."""
    async with running_informer(client) as watched:
        await server.watched()
        old = server.put("a", "1")
        server.put("a", "2")
        await watched.sees(a="2")
        assert watched.informer.mutation_cache.observe_object(shown(old)) == "2"
        server.drop("a")
        await watched.sees()
        assert watched.informer.mutation_cache.observe_object(shown(old)) is None
        assert watched.values == {}


async def test_an_older_event_does_not_undo_what_was_seen(server: ScriptedServer, client: Client) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        first = server.put("a", "1", tell=False)
        watched.informer.mutation_cache.observe_object(shown(server.put("a", "2", tell=False)))
        server.send(first)
        server.put("b", "after")
        await watched.sees(a="2", b="after")


async def test_a_namesake_that_is_gone_does_not_come_back_by_a_late_answer(
    server: ScriptedServer, client: Client
) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        first = server.put("a", "1")
        server.drop("a")
        server.put("a", "2")
        await watched.sees(a="2")
        assert watched.informer.mutation_cache.observe_object(shown(first)) == "2"


async def test_what_is_of_no_interest_is_none(server: ScriptedServer, client: Client) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        server.put("a", "1")
        await watched.sees(a="1")
        assert watched.informer.mutation_cache.observe_object(shown(server.put("a", "ignore", tell=False))) is None
        assert watched.values == {}


async def test_an_answer_that_cannot_be_converted_is_reported_like_an_event(
    server: ScriptedServer, client: Client
) -> None:
    async with running_informer(client) as watched:
        assert watched.informer.mutation_cache.observe_object(shown(server.put("a", "odd", tell=False))) is None
        assert watched.problems == [WatchProblemKind.UNCONVERTIBLE]


# --- What is no more ------------------------------------------------------------------------------------------------


async def test_what_an_answer_says_is_gone_leaves_the_cache_and_its_past_does_not_come_back(
    server: ScriptedServer, client: Client
) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        made = server.put("a", "1")
        await watched.sees(a="1")
        known = watched.informer.mutation_cache.known_version(("ns", "a"))
        assert known == version(made)
        gone = server.drop("a", tell=False)
        assert watched.informer.mutation_cache.observe_absence(("ns", "a"), known) is None
        assert watched.values == {}
        server.send(made)
        server.send(gone)
        server.put("b", "after")
        await watched.sees(b="after")
        assert watched.changes == [("a", None, "1"), ("b", None, "after")]


async def test_what_was_made_again_meanwhile_stays(server: ScriptedServer, client: Client) -> None:
    """The response NotFound was in flight while the watch reported a new one."""
    async with running_informer(client) as watched:
        await server.watched()
        server.put("a", "1")
        await watched.sees(a="1")
        known = watched.informer.mutation_cache.known_version(("ns", "a"))
        server.drop("a")
        server.put("a", "2")
        await watched.sees(a="2")
        assert watched.informer.mutation_cache.observe_absence(("ns", "a"), known) == "2"


async def test_what_was_never_known_is_not_missed(server: ScriptedServer, client: Client) -> None:
    async with running_informer(client) as watched:
        known = watched.informer.mutation_cache.known_version(("ns", "a"))
        assert known is None
        assert watched.informer.mutation_cache.observe_absence(("ns", "a"), known) is None


# --- While a list is under way ----------------------------------------------------------------------------------------


class Slow:
    """A list that was made before `act` and arrives after it."""

    def __init__(self, server: ScriptedServer, act: Callable[[], None]) -> None:
        self._server, self._act = server, act

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        answer = await self._server.list(request)
        self._act()
        return answer


async def relisted(server: ScriptedServer, watched: InformerHarness, act: Callable[[], None]) -> None:
    """Makes the informer list again while `act` happens, and watch again."""
    lists, watches = server.count("list"), server.count("watch")
    server.lists.append(Slow(server, act))
    server.watches.append(refusal(410))
    server.close_watches()
    await server.until(lambda: server.count("list") > lists)
    await server.watched(watches + 2)


async def test_what_was_made_while_a_list_was_under_way_stays(server: ScriptedServer, client: Client) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        event: Json = {}

        def make() -> None:
            event.update(server.put("a", "1", tell=False))
            watched.informer.mutation_cache.observe_object(shown(event))

        await relisted(server, watched, make)
        assert watched.changes == []
        server.send(event)
        server.drop("a")
        await watched.sees()
        assert watched.changes == [("a", "1", None)]


async def test_what_was_changed_while_a_list_was_under_way_is_not_put_back(
    server: ScriptedServer, client: Client
) -> None:
    server.put("a", "1")
    async with running_informer(client) as watched:
        await server.watched()

        def change() -> None:
            watched.informer.mutation_cache.observe_object(shown(server.put("a", "2", tell=False)))

        await relisted(server, watched, change)
        assert watched.values == {"a": "2"}
        assert watched.changes == [("a", None, "1")]


async def test_what_was_seen_before_a_list_began_is_in_it_or_gone_also_if_versions_fell(
    server: ScriptedServer, client: Client
) -> None:
    """The API's memory was put back to an earlier day: numbers lie, and the list is right."""
    async with running_informer(client) as watched:
        await server.watched()
        server.version = 900
        watched.informer.mutation_cache.observe_object(shown(server.put("a", "1", tell=False)))
        server.objects.clear()
        server.version = 200
        server.watches.append(refusal(410))
        server.close_watches()
        await watched.sees()
        await server.watched(3)
        server.put("b", "later")
        await watched.sees(b="later")


@pytest.mark.parametrize("seed", range(20))
async def test_any_order_of_writes_events_and_lists_ends_with_what_there_is(
    server: ScriptedServer, client: Client, seed: int
) -> None:
    """Ours and others' writes; answers and events in any order; lists in between."""
    rng = random.Random(seed)  # noqa: S311 - it must repeat
    async with running_informer(client) as watched:
        await server.watched()
        late: list[Callable[[], object]] = []

        def write() -> None:
            name = rng.choice("abc")
            seen = rng.random() < 0.7
            if name in server.objects and rng.random() < 0.4:
                known = watched.informer.mutation_cache.known_version(("ns", name))
                server.drop(name, tell=seen)
                if rng.random() < 0.5:
                    late.append(lambda: watched.informer.mutation_cache.observe_absence(("ns", name), known))
                return
            event = server.put(name, str(server.version), tell=seen)
            if rng.random() < 0.7:
                late.append(lambda: watched.informer.mutation_cache.observe_object(shown(event)))

        for _ in range(12):
            for _ in range(rng.randint(1, 4)):
                write()
            while late and rng.random() < 0.6:
                late.pop(rng.randrange(len(late)))()
            await asyncio.sleep(rng.choice((0.0, 0.1, 5.0)))
            if rng.random() < 0.5:
                await relisted(server, watched, write)
        while late:
            late.pop()()
        await relisted(server, watched, lambda: None)
        await watched.sees(**same_as(server))
