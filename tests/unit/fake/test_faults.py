"""Injected faults: each applies to the matching requests, as often as requested."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.access import Access
from jobset_gate.kube.resources import CONFIGMAPS as CONFIGMAP
from tests.contract.apiserver.api import CONFIGMAPS, RawApi, config_map
from tests.fakes.faults import WRITES, Faults, Match
from tests.unit.fake.world import virtual_time

WATCH = Match(CONFIGMAP, ("watch",))


@pytest.fixture
def faults() -> Faults:
    return Faults()


@pytest.fixture
async def server(faults: Faults) -> AsyncIterator[ApiServer]:
    async with ApiServer(hooks=faults) as running:
        yield running


@pytest.fixture
async def local(server: ApiServer) -> AsyncIterator[RawApi]:
    async with RawApi(Access(server.url), agent="controller/1") as talking:
        yield talking


async def test_what_matches_fails_as_often_as_requested(faults: Faults, local: RawApi) -> None:
    rule = faults.fail(Match(CONFIGMAP, ("list",)), status=429, times=2, retry_after=3)
    faults.fail(Match(CONFIGMAP, WRITES, agent="other"), times=9)
    faults.fail(Match(CONFIGMAP, WRITES, namespace="elsewhere"), times=9)
    faults.fail(Match(CONFIGMAP, WRITES, subresource="status"), times=9)
    faults.fail(Match(CONFIGMAP, ("get",), when=lambda call: call.target.name == "b"), times=9)
    replies = [await local.get(CONFIGMAPS) for _ in range(3)]
    assert [reply.status for reply in replies] == [429, 429, 200]
    assert replies[0].object["details"]["retryAfterSeconds"] == 3
    assert rule.struck == 2
    assert (await local.post(CONFIGMAPS, config_map("a"))).status == 201
    assert [(await local.get(f"{CONFIGMAPS}/{name}")).status for name in "ab"] == [200, 500]


async def test_a_request_hangs_until_it_is_released(faults: Faults, local: RawApi) -> None:
    rule = faults.hang(Match(CONFIGMAP, ("create",)))
    asking = asyncio.create_task(local.post(CONFIGMAPS, config_map()))
    assert {(await local.get(f"{CONFIGMAPS}/c")).status for _ in range(10)} == {404}
    assert not asking.done()
    rule.released.set()
    assert (await asking).status == 201


async def test_the_kill_switch_strikes_right_after_the_write_that_matches(
    server: ApiServer, faults: Faults, local: RawApi
) -> None:
    killed: list[str | None] = []

    async def client() -> None:
        for name in "abc":
            await local.post(CONFIGMAPS, config_map(name))

    running = asyncio.create_task(client())

    def kill(call: object) -> None:
        killed.append(type(call).__name__)
        running.cancel()

    faults.on_write(kill, Match(CONFIGMAP, agent="controller", when=lambda call: b'"b"' in call.body))
    with pytest.raises(asyncio.CancelledError):
        await running
    assert killed == ["ApiRequest"]
    async with RawApi(Access(server.url)) as other:
        assert [(await other.get(f"{CONFIGMAPS}/{name}")).status for name in "abc"] == [200, 200, 404]


@virtual_time
async def test_a_half_open_watch_sends_nothing_and_does_not_end() -> None:
    faults, clock = Faults(), VirtualClock(asyncio.get_running_loop())
    async with ApiServer(hooks=faults, clock=clock) as server, RawApi(Access(server.url)) as api:
        query = f"resourceVersion={server.store.revision}&allowWatchBookmarks=true&timeoutSeconds=300"
        async with api.watch(CONFIGMAPS, query) as watch:
            assert faults.silence() == 1
            await api.post(CONFIGMAPS, config_map())
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(watch.answer.content.readline(), 900)
        async with api.watch(CONFIGMAPS, query) as fresh:
            assert await fresh.until("c") == [("ADDED", "c")]
