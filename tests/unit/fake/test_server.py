"""What only the embedded API server can be made to do: history that is gone, concurrent writes, virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.apiserver.faults import Match
from jobset_gate.fake.clock import EPOCH, VirtualClock
from jobset_gate.kube.access import Access
from jobset_gate.kube.resources import CONFIGMAPS as CONFIGMAP
from tests.contract.apiserver.api import CONFIGMAPS, PODS, RawApi, bind, config_map, pod
from tests.contract.apiserver.hook_server import HookServer, allow
from tests.unit.fake.world import virtual_time


def wall_clock() -> VirtualClock:
    return VirtualClock(asyncio.get_running_loop())


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


@pytest.fixture
async def local(server: ApiServer) -> AsyncIterator[RawApi]:
    async with RawApi(Access(server.url)) as talking:
        yield talking


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


async def test_two_writers_at_once_both_succeed_through_admission(local: RawApi) -> None:
    """A patch that names no version is retried on the newer object."""
    async with HookServer(local) as hooks:
        await local.post(CONFIGMAPS, config_map())
        await hooks.add("look", allow)
        replies = await asyncio.gather(*(local.merge(f"{CONFIGMAPS}/c", {"data": {f"k{n}": str(n)}}) for n in range(4)))
        assert [reply.status for reply in replies] == [200] * 4, replies
        assert (await local.get(f"{CONFIGMAPS}/c")).object["data"] == {f"k{n}": str(n) for n in range(4)}


async def test_closed_watches_are_forgotten(server: ApiServer, local: RawApi) -> None:
    table = server.store.table(server.store.kinds.of(CONFIGMAP))
    async with local.watch(CONFIGMAPS, f"resourceVersion={server.store.revision}") as watch:
        assert len(table.watchers) == len(server.faults.watches) == 1
        server.faults.close_watches(Match(CONFIGMAP))
        assert await watch.next() is None
    assert not table.watchers


async def test_a_watch_from_a_forgotten_version_gets_410(server: ApiServer, local: RawApi) -> None:
    version = (await local.get(CONFIGMAPS)).meta["resourceVersion"]
    await local.post(CONFIGMAPS, config_map("a"))
    server.store.compact()
    refused = await local.get(f"{CONFIGMAPS}?watch=1&resourceVersion={version}")
    assert (refused.status, refused.reason) == (410, "Expired")
    assert refused.message.startswith(f"too old resource version: {version}")


async def test_a_server_that_comes_back_has_what_it_had(server: ApiServer, local: RawApi) -> None:
    await local.post(CONFIGMAPS, config_map("a"))
    port = int(server.url.rpartition(":")[2])
    await server.stop()
    await server.start(port)
    assert (await local.get(f"{CONFIGMAPS}/a")).status == 200
    owned = await local.delete(f"{CONFIGMAPS}/a")
    assert owned.status == 200


@virtual_time
async def test_a_quiet_watch_gets_a_bookmark_once_a_minute_and_at_its_end() -> None:
    async with ApiServer(clock=wall_clock()) as server, RawApi(Access(server.url)) as api:
        version = (await api.get(CONFIGMAPS)).meta["resourceVersion"]
        query = f"resourceVersion={version}&allowWatchBookmarks=true&timeoutSeconds=200"
        loop = asyncio.get_running_loop()
        started, seen = loop.time(), []
        async with api.watch(CONFIGMAPS, query) as watch:
            pods = 0
            while line := await watch.answer.content.readline():
                seen.append((round(loop.time() - started), b'"BOOKMARK"' in line))
                pods += 1
                await api.post(PODS, pod(f"other-{pods}"))
    assert seen == [(60, True), (120, True), (180, True), (200, True)]


@virtual_time
async def test_times_of_objects_are_of_the_given_clock() -> None:
    async with ApiServer(clock=wall_clock()) as server, RawApi(Access(server.url)) as api:
        await asyncio.sleep(60)
        made = await api.post(PODS, pod())
        await bind(api, "p", "node-1")
        marked = await api.delete(f"{PODS}/p")
    assert EPOCH == 1_767_225_600
    assert made.meta["creationTimestamp"] == "2026-01-01T00:01:00Z"
    assert marked.meta["deletionTimestamp"] == "2026-01-01T00:01:30Z"


@virtual_time
async def test_a_webhook_that_does_not_answer_is_given_up_after_its_timeout() -> None:
    async with (
        ApiServer(clock=wall_clock()) as server,
        RawApi(Access(server.url)) as api,
        HookServer(api) as hooks,
    ):
        await hooks.add("slow", allow, timeoutSeconds=7)
        hooks.silent = True
        loop = asyncio.get_running_loop()
        started = loop.time()
        refused = await api.post(CONFIGMAPS, config_map())
        assert 7 <= loop.time() - started < 8
        assert (refused.status, refused.reason) == (500, "InternalError")
        assert refused.message.endswith("context deadline exceeded")
