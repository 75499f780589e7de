"""What the embedded API server does by the clock, in virtual time: bookmarks, ends of watches, webhook timeouts."""

from __future__ import annotations

import asyncio
import time

from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.clock import EPOCH, virtual_clock, virtual_time
from jobset_gate.kube.access import Access
from jobset_gate.kube.resources import CONFIGMAPS as CONFIGMAP
from tests.contract.apiserver.api import CONFIGMAPS, PODS, RawApi, bind, config_map, pod
from tests.contract.apiserver.hook_server import HookServer, allow


@virtual_time
async def test_a_quiet_watch_is_told_the_version_once_a_minute_and_at_its_end() -> None:
    async with ApiServer(clock=virtual_clock()) as server, RawApi(Access(server.url)) as api:
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
async def test_bookmarks_carry_the_version_of_the_whole_store() -> None:
    async with ApiServer(clock=virtual_clock()) as server, RawApi(Access(server.url)) as api:
        version = int((await api.get(CONFIGMAPS)).meta["resourceVersion"])
        async with api.watch(CONFIGMAPS, f"resourceVersion={version}&allowWatchBookmarks=true") as watch:
            other = await api.post(PODS, pod())
            event = await asyncio.wait_for(watch.answer.content.readline(), 120)
        assert other.meta["resourceVersion"].encode() in event


@virtual_time
async def test_a_watch_without_bookmarks_stays_silent_until_something_happens() -> None:
    async with ApiServer(clock=virtual_clock()) as server, RawApi(Access(server.url)) as api:
        version = (await api.get(CONFIGMAPS)).meta["resourceVersion"]
        async with api.watch(CONFIGMAPS, f"resourceVersion={version}") as watch:
            asyncio.get_running_loop().call_later(1500, server.store.put, CONFIGMAP, _stored("late"))
            event = await asyncio.wait_for(watch.answer.content.readline(), 1600)
        assert b'"ADDED"' in event
        assert asyncio.get_running_loop().time() >= 1500


@virtual_time
async def test_objects_are_born_and_die_by_the_given_clock() -> None:
    async with ApiServer(clock=virtual_clock()) as server, RawApi(Access(server.url)) as api:
        await asyncio.sleep(60)
        made = await api.post(PODS, pod())
        await bind(api, "p", "node-1")
        marked = await api.delete(f"{PODS}/p")
    assert EPOCH == 1_767_225_600
    assert made.meta["creationTimestamp"] == "2026-01-01T00:01:00Z"
    assert marked.meta["deletionTimestamp"] == "2026-01-01T00:01:30Z"


@virtual_time
async def test_applying_the_same_a_minute_later_leaves_the_time_of_the_owner() -> None:
    async with ApiServer(clock=virtual_clock()) as server, RawApi(Access(server.url)) as api:
        made = await api.apply(f"{CONFIGMAPS}/c", config_map(a="1"))
        await asyncio.sleep(60)
        again = await api.apply(f"{CONFIGMAPS}/c", config_map(a="1"))
        assert again.object == made.object
        changed = await api.apply(f"{CONFIGMAPS}/c", config_map(a="2"))
        assert changed.meta["managedFields"][0]["time"] == "2026-01-01T00:01:00Z"


@virtual_time
async def test_a_webhook_that_does_not_answer_is_given_up_after_its_timeout() -> None:
    began = time.monotonic()
    async with ApiServer(clock=virtual_clock()) as server, RawApi(Access(server.url)) as api, HookServer(api) as hooks:
        await hooks.add("slow", allow, timeoutSeconds=7)
        hooks.silent = True
        loop = asyncio.get_running_loop()
        started = loop.time()
        refused = await api.post(CONFIGMAPS, config_map())
        assert 7 <= loop.time() - started < 8
        assert (refused.status, refused.reason) == (500, "InternalError")
        assert refused.message.endswith("context deadline exceeded")
    assert time.monotonic() - began < 5


def _stored(name: str) -> dict[str, object]:
    return {"metadata": {"name": name, "namespace": "default", "uid": "u"}}
