"""Watches: the same assertions against the embedded and the real API server."""

from __future__ import annotations

from tests.contract.apiserver.api import CONFIGMAPS, RawApi, config_map


async def _version(api: RawApi) -> str:
    return str((await api.get(CONFIGMAPS)).meta["resourceVersion"])


async def test_a_watch_sends_everything_after_its_version_in_order(api: RawApi) -> None:
    await api.post(CONFIGMAPS, config_map("before"))
    version = await _version(api)
    await api.post(CONFIGMAPS, config_map("a"))
    await api.merge(f"{CONFIGMAPS}/a", {"data": {"x": "1"}})
    async with api.watch(CONFIGMAPS, f"resourceVersion={version}") as watch:
        await api.post(CONFIGMAPS, config_map("b"))
        await api.delete(f"{CONFIGMAPS}/a")
        await api.post(CONFIGMAPS, config_map("last"))
        seen = await watch.until("last")
    assert seen == [("ADDED", "a"), ("MODIFIED", "a"), ("ADDED", "b"), ("DELETED", "a"), ("ADDED", "last")]


async def test_an_object_that_leaves_or_enters_a_selector_is_deleted_or_added(api: RawApi) -> None:
    version = await _version(api)
    async with api.watch(CONFIGMAPS, f"resourceVersion={version}&labelSelector=in%3Dyes") as watch:
        await api.post(CONFIGMAPS, config_map("a"))
        await api.merge(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"in": "yes"}}})
        inside = await api.merge(f"{CONFIGMAPS}/a", {"data": {"x": "1"}})
        left = await api.merge(f"{CONFIGMAPS}/a", {"metadata": {"labels": {"in": "no"}}, "data": {"x": "2"}})
        await api.merge(f"{CONFIGMAPS}/a", {"data": {"x": "3"}})
        events = [await watch.next() for _ in range(3)]
        await api.delete(f"{CONFIGMAPS}/a")
        await api.post(CONFIGMAPS, config_map("last", meta={"labels": {"in": "yes"}}))
        assert await watch.until("last") == [("ADDED", "last")]
    assert [event and event["type"] for event in events] == ["ADDED", "MODIFIED", "DELETED"]
    last = events[2]
    assert last is not None
    # The object as it was while it still matched, at the version at which it left.
    assert last["object"]["data"] == inside.object["data"]
    assert last["object"]["metadata"]["labels"] == {"in": "yes"}
    assert last["object"]["metadata"]["resourceVersion"] == left.meta["resourceVersion"]
