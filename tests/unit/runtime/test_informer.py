"""The informer when all is well."""

import asyncio

import msgspec
import pytest

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.runtime.decoder import WatchProblemKind
from jobset_gate.runtime.informer import Informer, WatchSource, object_informer
from jobset_gate.runtime.store import ObjectChange
from tests.fakes.background import in_background
from tests.fakes.informer_harness import InformerHarness, SampleObject, running_informer, value_of
from tests.fakes.scripted_server import ScriptedServer, stream_of


async def test_events_change_the_cache_and_reach_the_handler_with_the_old_model(
    server: ScriptedServer, client: Client
) -> None:
    server.put("a", "1")
    async with running_informer(client) as watched:
        assert watched.changes == [("a", None, "1")], "before it has synced"
        await server.watched()
        server.put("b", "new")
        server.put("a", "2")
        server.drop("a")
        await watched.sees(b="new")
        assert watched.changes[1:] == [("b", None, "new"), ("a", "1", "2"), ("a", "2", None)]


async def test_the_list_is_read_in_pages_and_the_watch_begins_at_its_version(
    server: ScriptedServer, client: Client
) -> None:
    for i in range(25):
        server.put(f"n{i:02}", "x")
    async with running_informer(
        client, page_size=10, label_selector="a=b", field_selector="metadata.name=x"
    ) as watched:
        await server.watched()
        assert len(watched.values) == 25
    lists = [asked.query for asked in server.requests if asked.verb == "list"]
    assert [(query["limit"], query.get("continue")) for query in lists] == [("10", None), ("10", "10"), ("10", "20")]
    (watch,) = [asked.query for asked in server.requests if asked.verb == "watch"]
    assert watch["resourceVersion"] == "125"
    for query in (*lists, watch):
        assert (query["labelSelector"], query["fieldSelector"]) == ("a=b", "metadata.name=x")
    assert watch["allowWatchBookmarks"] == "true"
    assert 50 <= int(watch["timeoutSeconds"]) <= 60


async def test_a_watch_that_ends_regularly_is_followed_by_one_from_where_it_ended(
    server: ScriptedServer, client: Client
) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        server.put("a", "1")
        await watched.sees(a="1")
        await server.watched(times=2)
        server.put("a", "2")
        await watched.sees(a="2")
    assert server.count("list") == 1
    assert [asked.query["resourceVersion"] for asked in server.requests if asked.verb == "watch"] == ["100", "101"]
    assert watched.problems == []


async def test_bookmarks_move_the_version_and_nothing_else(server: ScriptedServer, client: Client) -> None:
    async with running_informer(client) as watched:
        await server.watched()
        bookmark = {"kind": "ConfigMap", "metadata": {"resourceVersion": "4711", "creationTimestamp": None}}
        server.send({"type": "BOOKMARK", "object": bookmark})
        await server.watched(times=2)
    assert server.requests[-1].query["resourceVersion"] == "4711"
    assert (watched.changes, watched.problems) == ([], [])


async def test_an_object_that_convert_chokes_on_is_left_out_and_reported(
    server: ScriptedServer, client: Client
) -> None:
    server.put("a", "odd")
    server.put("b", "1")
    async with running_informer(client) as watched:
        assert watched.values == {"b": "1"}
        await server.watched()
        server.put("b", "odd")
        await watched.sees()
        server.put("b", "2")
        await watched.sees(b="2")
        assert watched.problems == [WatchProblemKind.UNCONVERTIBLE] * 2


async def test_an_object_of_another_form_is_known_to_be_no_longer_what_it_was(
    server: ScriptedServer, client: Client
) -> None:
    """Valid JSON whose fields have the wrong types: what it was before is not kept as if it were still true."""
    server.put("a", "1")
    server.put("b", "1")
    async with running_informer(client) as watched:
        await server.watched()
        event = server.put("a", tell=False)
        event["object"]["data"] = {"value": 7}
        server.send(event)
        await watched.sees(b="1")
        assert watched.problems == [WatchProblemKind.UNREADABLE]
        assert server.count("list") == 1


@pytest.mark.parametrize("when", ["list", "watch"])
async def test_an_exception_of_the_handler_ends_the_informer(server: ScriptedServer, client: Client, when: str) -> None:
    """Also a TimeoutError, which the informer itself uses."""
    server.put("good", "1")

    def broken(change: ObjectChange[str]) -> None:
        if change.key[1] == "bad":
            raise TimeoutError("the handler's")

    informer = Informer(client, WatchSource(CONFIGMAPS, SampleObject, value_of, broken, namespace="ns"))
    if when == "list":
        server.put("bad", "1")
    run = asyncio.create_task(informer.run())
    if when == "watch":
        await server.watched()
        server.put("bad", "1")
    with pytest.raises(TimeoutError, match="the handler's"):
        await run


async def test_nobody_sees_half_of_a_relist(server: ScriptedServer, client: Client) -> None:
    """A pod that died and one that started later must not be seen alive together."""
    for i in range(300):
        server.put(f"n{i:03}", "old")
    seen: set[frozenset[str]] = set()
    handled: set[int] = set()
    async with running_informer(client, page_size=10, relist_seconds=100.0) as watched:

        async def look() -> None:
            while True:
                seen.add(frozenset(watched.values.values()))
                handled.add(len(watched.changes) - 300)
                await asyncio.sleep(0)

        await server.watched()
        for i in range(300):
            server.put(f"n{i:03}", "new", tell=False)
        before = server.count("list")
        await server.until(lambda: server.count("list") > before)
        async with in_background(look()):
            await watched.sees(**{f"n{i:03}": "new" for i in range(300)})
            await asyncio.sleep(0)
    assert handled <= {0, 300}, "an index that a handler keeps is never half-way either"
    assert frozenset({"old"}) in seen
    assert seen <= {frozenset({"old"}), frozenset({"new"})}


async def test_the_first_list_leaves_the_loop_free_between_slices(server: ScriptedServer, client: Client) -> None:
    """64 objects or 256 KiB at most are worked on between two turns of the loop."""
    for i in range(1000):
        server.put(f"n{i:04}", "x")
    worked: list[int] = []

    def convert(thing: SampleObject) -> str:
        worked[-1] += 1
        return thing.data["value"]

    async def count_turns() -> None:
        while True:
            worked.append(0)
            await asyncio.sleep(0)

    informer = Informer(client, WatchSource(CONFIGMAPS, SampleObject, convert, lambda _: None, namespace="ns"))
    async with in_background(count_turns()), in_background(informer.run()):
        await informer.wait_synced()
    assert sum(worked) == 1000
    assert max(worked) <= 64


async def test_a_burst_of_events_leaves_the_loop_free_too(server: ScriptedServer, client: Client) -> None:
    events = [msgspec.json.encode(server.put(f"n{i:04}", "x", tell=False)) for i in range(1000)]
    objects, server.objects = server.objects, {}
    server.version = 100
    server.watches.append(stream_of(b"\n".join(events) + b"\n"))
    watched = InformerHarness(client)
    largest = before = 0
    async with in_background(watched.informer.run()):
        while len(watched.changes) < len(objects):
            await asyncio.sleep(0)
            largest = max(largest, len(watched.changes) - before)
            before = len(watched.changes)
    assert 0 < largest <= 64


async def test_one_object_is_requested_by_its_name_in_its_namespace_and_each_change_is_reported(
    server: ScriptedServer, client: Client
) -> None:
    versions: list[str | None] = []
    server.put("a", "1")
    informer = object_informer(client, CONFIGMAPS, "a", lambda change: versions.append(change.new), namespace="ns")
    async with in_background(informer.run()):
        await server.watched()
        stored = server.put("a", "2")["object"]["metadata"]["resourceVersion"]
        await server.until(lambda: len(versions) > 1)
    assert versions[1:] == [stored]
    assert {asked.path for asked in server.requests} == {"/api/v1/namespaces/ns/configmaps"}
    assert {asked.query["fieldSelector"] for asked in server.requests} == {"metadata.name=a"}
