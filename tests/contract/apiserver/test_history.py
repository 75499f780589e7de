"""How far back the embedded API server remembers: watches and pages from before that are told to begin again."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jobset_gate.fake.apiserver import ApiServer, ObjectStore
from jobset_gate.kube.access import Access
from jobset_gate.kube.resources import CONFIGMAPS as CONFIGMAP
from jobset_gate.kube.resources import PODS as POD
from tests.contract.apiserver.api import CONFIGMAPS, RawApi, config_map


@pytest.fixture
async def server() -> AsyncIterator[ApiServer]:
    async with ApiServer() as running:
        yield running


@pytest.fixture
async def local(server: ApiServer) -> AsyncIterator[RawApi]:
    async with RawApi(Access(server.url)) as talking:
        yield talking


async def test_a_watch_from_a_forgotten_version_is_told_410(server: ApiServer, local: RawApi) -> None:
    version = (await local.get(CONFIGMAPS)).meta["resourceVersion"]
    await local.post(CONFIGMAPS, config_map("a"))
    server.store.compact()
    refused = await local.get(f"{CONFIGMAPS}?watch=1&resourceVersion={version}")
    assert (refused.status, refused.reason) == (410, "Expired")
    assert refused.message.startswith(f"too old resource version: {version}")


async def test_a_watch_from_the_present_survives_forgetting(server: ApiServer, local: RawApi) -> None:
    await local.post(CONFIGMAPS, config_map("a"))
    version = (await local.get(CONFIGMAPS)).meta["resourceVersion"]
    server.store.compact()
    async with local.watch(CONFIGMAPS, f"resourceVersion={version}") as watch:
        await local.post(CONFIGMAPS, config_map("b"))
        assert await watch.until("b") == [("ADDED", "b")]


async def test_pages_of_a_forgotten_state_are_told_410(server: ApiServer, local: RawApi) -> None:
    for name in "abc":
        await local.post(CONFIGMAPS, config_map(name))
    page = await local.get(f"{CONFIGMAPS}?limit=2")
    await local.post(CONFIGMAPS, config_map("d"))
    server.store.compact()
    refused = await local.get(f"{CONFIGMAPS}?limit=2&continue={page.meta['continue']}")
    assert (refused.status, refused.reason) == (410, "Expired")


def test_only_so_many_changes_of_a_kind_are_remembered() -> None:
    store = ObjectStore(history=10)
    for number in range(25):
        store.put(CONFIGMAP, {"metadata": {"name": f"c{number}", "namespace": "default"}})
    table = store.table(store.kinds.of(CONFIGMAP))
    assert len(table.history) == 10
    assert table.floor == table.history[0].rv - 1
    assert [change.now.key[1] for change in table.since(table.floor)] == [f"c{number}" for number in range(15, 25)]


def test_the_store_can_be_filled_and_read_directly() -> None:
    store = ObjectStore()
    for namespace, name in (("b", "x"), ("a", "y"), ("a", "x")):
        store.put(POD, {"metadata": {"name": name, "namespace": namespace}})
    assert [(item["metadata"]["namespace"], item["metadata"]["name"]) for item in store.list(POD)] == [
        ("a", "x"),
        ("a", "y"),
        ("b", "x"),
    ]
    assert len(store.list(POD, "a")) == 2
    found = store.get(POD, "x", "b")
    assert found is not None
    assert found["kind"] == "Pod"
    store.drop(POD, "x", "b")
    assert store.get(POD, "x", "b") is None


async def test_a_server_that_comes_back_has_what_it_had(server: ApiServer, local: RawApi) -> None:
    await local.post(CONFIGMAPS, config_map("a"))
    port = int(server.url.rpartition(":")[2])
    await server.stop()
    await server.start(port)
    assert (await local.get(f"{CONFIGMAPS}/a")).status == 200
    owned = await local.delete(f"{CONFIGMAPS}/a")
    assert owned.status == 200
