"""The HTTP edge of the embedded API server: what it refuses, and what a request that goes away leaves behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.apiserver.http_handler import LARGEST_BODY
from jobset_gate.fake.faults import Match
from jobset_gate.kube.access import Access
from jobset_gate.kube.resources import CONFIGMAPS as CONFIGMAP
from tests.contract.apiserver.api import CONFIGMAPS, JSON, Json, RawApi, config_map
from tests.contract.apiserver.hook_server import HookServer, allow


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


@pytest.fixture
async def local(server: ApiServer) -> AsyncIterator[RawApi]:
    async with RawApi(Access(server.url)) as talking:
        yield talking


async def test_a_body_may_have_eight_mebibytes_and_no_more(local: RawApi) -> None:
    largest = b'{"a":"' + b"x" * (LARGEST_BODY - 8) + b'"}'
    assert len(largest) == 8 * 1024 * 1024
    assert (await local.post(CONFIGMAPS, largest)).status == 422, "read, and found to have no name"
    assert (await local.post(CONFIGMAPS, largest + b" ")).status == 413


@pytest.mark.parametrize("body", [b"", b"\xff\x00", b"[]", b'"text"', b'{"metadata": 3}'])
async def test_bodies_that_are_no_objects_are_refused(local: RawApi, body: bytes) -> None:
    assert (await local.post(CONFIGMAPS, body)).status == 400


async def test_large_objects_go_through_webhooks(local: RawApi) -> None:
    """The review carries the object twice, so it is larger than what a client may send."""
    async with HookServer(local) as hooks:
        await hooks.add("look", allow)
        made = await local.post(CONFIGMAPS, config_map(a="x" * 1_000_000))
        changed = await local.merge(f"{CONFIGMAPS}/c", {"data": {"b": "y"}})
        assert (made.status, changed.status) == (201, 200)
        assert len(hooks.asked[1][1]["oldObject"]["data"]["a"]) == 1_000_000


async def test_other_content_types_are_not_read(local: RawApi) -> None:
    refused = await local.call("POST", CONFIGMAPS, config_map(), "application/vnd.kubernetes.protobuf")
    assert refused.status == 415


async def test_a_client_that_goes_away_during_admission_leaves_nothing(server: ApiServer, local: RawApi) -> None:
    async with HookServer(local) as hooks:
        await hooks.add("slow", allow)
        hooks.silent = True
        asking = asyncio.create_task(local.post(CONFIGMAPS, config_map()))
        await hooks.reached.wait()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await local.get(f"{CONFIGMAPS}/c")).status == 404


async def test_two_writers_at_once_both_get_their_way_through_admission(local: RawApi) -> None:
    """A patch that names no version is made again on what the other left."""
    async with HookServer(local) as hooks:
        await local.post(CONFIGMAPS, config_map())
        await hooks.add("look", allow)
        await asyncio.gather(*(local.merge(f"{CONFIGMAPS}/c", {"data": {f"k{n}": str(n)}}) for n in range(4)))
        assert (await local.get(f"{CONFIGMAPS}/c")).object["data"] == {f"k{n}": str(n) for n in range(4)}


async def test_only_one_of_two_compare_and_swaps_through_admission_wins(local: RawApi) -> None:
    async with HookServer(local) as hooks:
        first = await local.post(CONFIGMAPS, config_map())
        await hooks.add("look", allow)
        bodies = [{**first.object, "data": {"winner": name}} for name in "ab"]
        replies = await asyncio.gather(*(local.put(f"{CONFIGMAPS}/c", body) for body in bodies))
        assert sorted(reply.status for reply in replies) == [200, 409]


async def test_a_webhook_may_be_named_by_its_service(server: ApiServer, local: RawApi) -> None:
    async with HookServer(local) as hooks:
        service: Json = {"clientConfig": {"service": {"namespace": "default", "name": "door", "path": "/look"}}}
        await hooks.add("look", allow, **service)
        assert (await local.post(CONFIGMAPS, config_map("a"))).status == 500
        server.webhook_services["default", "door"] = "https://127.0.0.1:1"
        refused = await local.post(CONFIGMAPS, config_map("b"))
        assert "https://127.0.0.1:1/look" in refused.message


async def test_closed_watches_are_forgotten(server: ApiServer, local: RawApi) -> None:
    table = server.store.table(server.store.kinds.of(CONFIGMAP))
    async with local.watch(CONFIGMAPS, f"resourceVersion={server.store.revision}") as watch:
        assert len(table.watchers) == len(server.faults.watches) == 1
        server.faults.close_watches(Match(CONFIGMAP))
        assert await watch.next() is None
    assert not table.watchers


async def test_content_type_defaults_to_json(local: RawApi) -> None:
    assert (await local.call("POST", CONFIGMAPS, config_map(), JSON + "; charset=utf-8")).status == 201
