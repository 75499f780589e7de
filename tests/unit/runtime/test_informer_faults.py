"""The informer in trouble: watches that fail, hang, lie, or tell things twice (faults 1-4 and 8)."""

import asyncio
import random
from itertools import pairwise

import msgspec
import pytest
from aiohttp import web

from jobset_gate.kube.client import Client
from jobset_gate.kube.transport import LONGEST_LINE
from jobset_gate.runtime.clock import monotonic as now
from jobset_gate.runtime.decoder import WatchProblemKind
from tests.fakes.informer_harness import InformerHarness, SampleObject, running_informer
from tests.fakes.loopback_server import Answer
from tests.fakes.scripted_server import (
    ScriptedServer,
    abort_connection,
    never_ending_watch,
    no_response,
    refusal,
    stream_of,
)

ERROR_410 = b'{"type":"ERROR","object":{"kind":"Status","status":"Failure","reason":"Expired","code":410}}\n'


def watches_since(server: ScriptedServer, start: float) -> list[float]:
    return [asked.at - start for asked in server.requests if asked.verb == "watch" and asked.at >= start]


# --- 1: refused, or closed at once


@pytest.mark.parametrize(
    "trouble",
    [
        refusal(429),
        refusal(502, text="<html>Bad Gateway</html>"),
        stream_of(b"\n"),
        abort_connection,
        stream_of(b'{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}\n'),
    ],
    ids=["429", "502", "closed", "reset", "status-body"],
)
async def test_a_watch_refused_for_a_minute_is_backed_off_and_right_afterwards(
    server: ScriptedServer, client: Client, trouble: Answer
) -> None:
    """At most five attempts in the first ten seconds, no change made of an error body, all caught up with."""
    server.put("a", "1")
    async with running_informer(client) as watched:
        await server.watched()
        await asyncio.sleep(20)
        start = now()
        server.watches.extend([trouble] * 1000)
        server.close_watches()
        await asyncio.sleep(60)
        attempts = watches_since(server, start)
        assert sum(at <= 10 for at in attempts) <= 5
        assert 5 <= len(attempts) <= 10
        assert watched.changes == [("a", None, "1")]
        server.put("a", "2", tell=False)
        server.put("b", "3", tell=False)
        server.watches.clear()
        server.lists.clear()
        # A server that keeps its history sends what was missed; ours has none, so have it asked for.
        server.watches.append(refusal(410))
        await watched.sees(a="2", b="3")
        assert now() - start <= 60 + 32


async def test_the_backoff_starts_again_after_a_stream_that_lasted(server: ScriptedServer, client: Client) -> None:
    async with running_informer(client):
        await server.watched()
        for _ in range(3):
            await asyncio.sleep(10)
            server.watches.extend([refusal(502)] * 2)
            start = now()
            server.close_watches()
            await server.until(lambda: not server.watches)
            await server.watched()
            assert now() - start < 4


async def test_a_stream_that_brings_one_event_and_closes_is_no_healthy_one(
    server: ScriptedServer, client: Client
) -> None:
    """Else a server that dies of each request would be asked a thousand times a second."""

    async def one_event(request: web.Request) -> web.StreamResponse:
        line = msgspec.json.encode(server.put("a", str(server.version), tell=False)) + b"\n"
        return await stream_of(line)(request)

    server.watches.extend([one_event] * 100)
    async with running_informer(client):
        await asyncio.sleep(60)
        assert server.count("watch") <= 9


async def test_the_advice_of_retry_after_is_taken(server: ScriptedServer, client: Client) -> None:
    server.watches.append(refusal(429, retry_after=17))
    async with running_informer(client):
        await server.watched()
        first, second = watches_since(server, 0)
        assert 17 <= second - first < 18


@pytest.mark.parametrize(
    "trouble", [refusal(500), refusal(429), refusal(403), abort_connection, refusal(200, text="{]")]
)
async def test_a_list_that_fails_is_tried_again_with_backoff(
    server: ScriptedServer, client: Client, trouble: Answer
) -> None:
    server.put("a", "1")
    server.lists.extend([trouble] * 4)
    async with running_informer(client) as watched:
        assert watched.values == {"a": "1"}
        assert watched.problems == [WatchProblemKind.LIST_FAILED] * 4
        times = [asked.at for asked in server.requests if asked.verb == "list"]
        pauses = [later - earlier for earlier, later in pairwise(times)]
        assert len(pauses) == 4
        assert all(round(pause, 2) >= 0.6 * 2**i for i, pause in enumerate(pauses))


async def test_a_list_that_hangs_is_given_up_and_tried_again(server: ScriptedServer, client: Client) -> None:
    server.lists.append(no_response)
    async with running_informer(client) as watched:
        assert 30 <= now() <= 32
        assert watched.problems == [WatchProblemKind.LIST_FAILED]


async def test_a_resource_that_is_not_installed_is_found_within_seconds_of_its_installation(
    server: ScriptedServer, client: Client
) -> None:
    server.lists.extend([refusal(404, text="404 page not found")] * 10_000)
    watched = InformerHarness(client)
    run = asyncio.create_task(watched.informer.run())
    await asyncio.sleep(600)
    assert not watched.informer.has_synced
    assert 150 <= server.count("list") <= 300
    server.lists.clear()
    start = now()
    await watched.informer.wait_synced()
    assert now() - start <= 4
    run.cancel()


# --- 2: silence


@pytest.mark.parametrize("watch", [never_ending_watch, no_response], ids=["nothing comes", "no response"])
async def test_a_silent_watch_is_noticed_within_70_seconds_and_nothing_is_missed(
    server: ScriptedServer, client: Client, watch: Answer
) -> None:
    server.put("a", "1")
    server.put("b", "1")
    server.watches.append(watch)
    async with running_informer(client) as watched:
        await server.until(lambda: server.count("watch") == 1)
        start = now()
        server.put("a", "2", tell=False)
        server.drop("b", tell=False)
        await watched.sees(a="2")
        assert now() - start < 70
        assert watched.problems == [WatchProblemKind.SILENT]
        assert server.count("list") == 2


async def test_what_comes_after_a_silence_makes_the_cache_no_younger_than_it_is(
    server: ScriptedServer, client: Client
) -> None:
    """Values are the times at which they were written. Nobody knows how old a bookmark is."""

    def written_at(thing: SampleObject) -> float:
        return float(thing.data["value"])

    async with running_informer(client, written_at=written_at, clock=now) as watched:
        await server.watched()
        await asyncio.sleep(40)
        assert watched.informer.staleness >= 40
        server.send(b'{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"100"}}}\n')
        server.put("a", "5")
        await watched.sees(a="5")
        assert 35 <= watched.informer.staleness < 36
        server.put("b", moment := str(now()))
        await watched.sees(a="5", b=moment)
        assert watched.informer.staleness < 1


async def test_after_a_torn_line_the_cache_is_as_old_as_it_was_until_the_next_list(
    server: ScriptedServer, client: Client
) -> None:
    async with running_informer(client, written_at=lambda _: now(), clock=now) as watched:
        await server.watched()
        await asyncio.sleep(40)
        server.drop(server.put("a", "lost", tell=False)["object"]["metadata"]["name"], tell=False)
        server.send(b"garbage\n")
        server.put("b", "new")
        await watched.sees(b="new")
        assert watched.informer.staleness >= 40
        await server.until(lambda: server.count("list") == 2)
        await server.watched(times=2)
        assert watched.informer.staleness < 1


# --- 3: 410


@pytest.mark.parametrize(
    "error",
    [
        stream_of(ERROR_410),
        refusal(410),
        stream_of(b'{"type":"ERROR"}\n'),
        stream_of(b'{"type":"ERROR","object":{"metadata":{"name":7},"code":"x"}}\n'),
        stream_of(b'{"type":"ERROR","object":{"metadata":{"name":"a","resourceVersion":"9999"},"code":500}}\n'),
    ],
    ids=["event", "status", "bare", "wrong-types", "like-an-object"],
)
async def test_gone_leads_to_exactly_one_relist_that_finds_deletions(
    server: ScriptedServer, client: Client, error: Answer
) -> None:
    server.put("a", "1")
    server.put("b", "1")
    async with running_informer(client) as watched:
        await server.watched()
        await asyncio.sleep(20)
        server.watches.append(error)
        server.drop("a", tell=False)
        server.put("c", "1", tell=False)
        start = now()
        server.close_watches()
        await watched.sees(b="1", c="1")
        await server.watched(times=3)
        await asyncio.sleep(10)
        assert now() - start < 12
        assert server.count("list") == 2
        assert watched.changes[2:] == [("a", "1", None), ("c", None, "1")]


async def test_a_server_that_always_says_gone_is_not_hammered(server: ScriptedServer, client: Client) -> None:
    server.watches.extend([refusal(410)] * 100)
    async with running_informer(client):
        await asyncio.sleep(10)
        assert server.count("list") <= 5
        assert server.count("watch") <= 5


async def test_a_continue_token_that_expires_begins_the_list_again(server: ScriptedServer, client: Client) -> None:
    for i in range(30):
        server.put(f"n{i:02}", "x")
    server.lists.extend([server.list, server.list, refusal(410)])
    async with running_informer(client, page_size=10) as watched:
        assert len(watched.values) == 30
        assert watched.problems == [WatchProblemKind.EXPIRED]
        queries = [asked.query.get("continue") for asked in server.requests if asked.verb == "list"]
        assert queries == [None, "10", "20", None, "10", "20"]
        assert now() <= 1


# --- 4: lines that are none


@pytest.mark.parametrize(
    ("line", "kind"),
    [
        (b'{"type":"MODIFIED","object":{"metadata":{"name":"a","namesp\n', WatchProblemKind.TORN),
        (b"garbage\n", WatchProblemKind.TORN),
        (b'{"type":"MODIFIED","object":{"metadata":{"name":"\xff"}}}\n', WatchProblemKind.UNREADABLE),
        (b'{"type":"MODIFIED","object":{"metadata":null,"data":{"value\n', WatchProblemKind.TORN),
        (b'{"type":"MODIFIED","object":' + b"[" * 100_000 + b"\n", WatchProblemKind.TORN),
        (b'{"type":"MODIFIED","object":"' + b"x" * LONGEST_LINE + b'"}\n', WatchProblemKind.TOO_LONG),
        (b"[1,2]\n", WatchProblemKind.TORN),
        (b'{"type":"MODIFIED","object":{"metadata":{"namespace":"ns"}}}\n', WatchProblemKind.UNREADABLE),
    ],
    ids=["torn", "garbage", "utf8", "torn-and-wrong", "deep", "huge", "list", "nameless"],
)
async def test_a_line_that_is_none_is_skipped_and_made_up_for(
    server: ScriptedServer, client: Client, line: bytes, kind: WatchProblemKind
) -> None:
    """Counted; the stream goes on; and since it may have been a change, a list follows soon."""
    server.put("a", "1")
    async with running_informer(client) as watched:
        await server.watched()
        await asyncio.sleep(20)
        start = now()
        server.put("a", "2", tell=False)
        server.send(line)
        server.put("b", "1")
        await watched.sees(a="1", b="1")
        assert now() - start < 1
        assert server.count("watch") == 1
        await watched.sees(a="2", b="1")
        assert now() - start < 3
        assert server.count("list") == 2
        assert watched.problems == [kind]


async def test_a_stream_full_of_garbage_does_not_mean_a_stream_of_lists(server: ScriptedServer, client: Client) -> None:
    async with running_informer(client) as watched:
        for _ in range(600):
            server.send(b"garbage\n")
            await asyncio.sleep(1)
        assert len(watched.problems) > 300
        assert server.count("list") <= 1 + 600 / 30


async def test_an_event_of_unknown_type_is_counted_and_changes_nothing(server: ScriptedServer, client: Client) -> None:
    server.put("a", "1")
    async with running_informer(client) as watched:
        await server.watched()
        server.send({**server.put("a", "2", tell=False), "type": "RENAMED"})
        await watched.reports(WatchProblemKind.UNREADABLE)
        assert watched.values == {"a": "1"}


# --- 8: dropped, doubled, reordered


@pytest.mark.parametrize("seed", range(5))
async def test_events_dropped_are_made_up_for_by_the_list_that_comes_in_any_case(
    server: ScriptedServer, client: Client, seed: int
) -> None:
    """Of random changes of a few objects half are sent."""
    async with running_informer(client, relist_seconds=600.0) as watched:
        await server.watched()
        rng = random.Random(seed)  # noqa: S311 - it must repeat
        for step in range(60):
            name, sent = f"n{rng.randrange(6)}", rng.random() < 0.5
            if name in server.objects and rng.random() < 0.4:
                server.drop(name, tell=sent)
            else:
                server.put(name, str(step), tell=sent)
        start = now()
        await watched.sees(**{name: thing["data"]["value"] for name, thing in server.objects.items()})
        assert now() - start <= 600


@pytest.mark.parametrize("end", [abort_connection, refusal(410)])
async def test_an_object_of_ours_that_was_lost_before_the_watch_reported_it_is_missed_by_a_list(
    server: ScriptedServer, client: Client, end: Answer
) -> None:
    async with running_informer(client, relist_seconds=60.0) as watched:
        await server.watched()
        watched.informer.store.observe_object(msgspec.convert(server.put("a", "1", tell=False)["object"], SampleObject))
        assert watched.values == {"a": "1"}
        server.drop("a", tell=False)
        server.watches.append(end)
        server.close_watches()
        await watched.sees()
        assert watched.changes == [("a", "1", None)]
