"""Lists of objects whose size their owners choose: what is in memory at once has a bound."""

from collections import deque

import msgspec
import pytest

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import InvalidResponse
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.runtime.decoder import PartialObjectMetadata
from jobset_gate.runtime.paging import PAGE_BYTES, ListScope, list_objects
from tests.fakes.large_lists import MIB, LargeListServer, peak
from tests.fakes.scripted_server import ScriptedServer

SCOPE = ListScope(CONFIGMAPS, "ns")


def item(name: str, size: int) -> bytes:
    return msgspec.json.encode({"metadata": {"name": name}, "data": {"value": "x" * size}})


async def names_of(client: Client, into: list[str]) -> None:
    into.extend([it.metadata.name async for it in list_objects(client, SCOPE, PartialObjectMetadata, 500)])


async def test_large_objects_behind_small_ones_are_never_all_in_memory(server: ScriptedServer, client: Client) -> None:
    """The first page says nothing about the next: 60 MiB here, in one page by numbers alone."""
    large = item("", MIB)
    items = [*(item(f"small-{number}", 10) for number in range(500)), *([large] * 60)]
    server.lists = deque([LargeListServer(items)] * 500)
    found: list[str] = []
    assert await peak(names_of(client, found)) < 5 * PAGE_BYTES / MIB
    assert len(found) == 560


async def test_pages_grow_again_behind_large_objects(server: ScriptedServer, client: Client) -> None:
    items = [*([item("large", MIB)] * 30), *(item(f"small-{number}", 10) for number in range(2000))]
    answers = LargeListServer(items)
    server.lists = deque([answers] * 500)
    await names_of(client, [])
    assert answers.limits[-1] == 500
    assert len(answers.limits) < 30


async def test_one_object_is_read_however_large_it_is(server: ScriptedServer, client: Client) -> None:
    server.lists = deque([LargeListServer([item("giant", 3 * PAGE_BYTES)])] * 10)
    found: list[str] = []
    await names_of(client, found)
    assert found == ["giant"]


async def test_an_unreadable_object_hides_no_other_unless_the_list_is_strict(
    server: ScriptedServer, client: Client
) -> None:
    for name in "abc":
        server.put(name, "1")
    server.objects["b"]["metadata"]["uid"] = 7
    problems: list[str] = []
    readable = list_objects(client, SCOPE, PartialObjectMetadata, on_unreadable=problems.append)
    assert [it.metadata.name async for it in readable] == ["a", "c"]
    assert [it.startswith("not readable: ") for it in problems] == [True]
    with pytest.raises(InvalidResponse):
        await names_of(client, [])
