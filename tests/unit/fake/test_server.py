"""What only the embedded API server can be made to do: history that is gone, concurrent writes, virtual time."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.clock import EPOCH, VirtualClock
from jobset_gate.kube.access import Access
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


async def test_two_writers_at_once_both_succeed_through_admission(local: RawApi) -> None:
    """A patch that names no version is retried on the newer object."""
    async with HookServer(local) as hooks:
        await local.post(CONFIGMAPS, config_map())
        await hooks.add("look", allow)
        replies = await asyncio.gather(*(local.merge(f"{CONFIGMAPS}/c", {"data": {f"k{n}": str(n)}}) for n in range(4)))
        assert [reply.status for reply in replies] == [200] * 4, replies
        assert (await local.get(f"{CONFIGMAPS}/c")).object["data"] == {f"k{n}": str(n) for n in range(4)}


async def test_a_watch_from_a_forgotten_version_gets_410(server: ApiServer, local: RawApi) -> None:
    version = (await local.get(CONFIGMAPS)).meta["resourceVersion"]
    await local.post(CONFIGMAPS, config_map("a"))
    server.store.compact()
    refused = await local.get(f"{CONFIGMAPS}?watch=1&resourceVersion={version}")
    assert (refused.status, refused.reason) == (410, "Expired")
    assert refused.message.startswith(f"too old resource version: {version}")


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
