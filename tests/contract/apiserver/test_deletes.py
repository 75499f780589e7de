"""Deleting: preconditions, finalizers, grace, owners. The same assertions against both API servers."""

from __future__ import annotations

from tests.contract.apiserver.api import CONFIGMAPS, PODS, RawApi, bind, config_map, pod


async def _gone(api: RawApi, path: str, name: str, version: str) -> None:
    """Wait until an object is deleted."""
    async with api.watch(path, f"fieldSelector=metadata.name%3D{name}&resourceVersion={version}") as watch:
        await watch.until(name, "DELETED")


async def test_preconditions_must_hold(api: RawApi) -> None:
    made = await api.post(CONFIGMAPS, config_map())
    for conditions in ({"uid": "another"}, {"resourceVersion": "1"}):
        refused = await api.delete(f"{CONFIGMAPS}/c", preconditions=conditions)
        assert (refused.status, refused.reason) == (409, "Conflict")
    right = {"uid": made.meta["uid"], "resourceVersion": made.meta["resourceVersion"]}
    assert (await api.delete(f"{CONFIGMAPS}/c", preconditions=right)).status == 200
    assert (await api.delete(f"{CONFIGMAPS}/c")).status == 404


async def test_a_finalizer_keeps_an_object_until_it_is_removed(api: RawApi) -> None:
    await api.post(CONFIGMAPS, config_map(meta={"finalizers": ["example.com/wait"]}))
    marked = await api.delete(f"{CONFIGMAPS}/c")
    assert marked.meta["deletionTimestamp"]
    assert marked.meta["deletionGracePeriodSeconds"] == 0
    again = await api.delete(f"{CONFIGMAPS}/c")
    assert again.object == marked.object
    finished = await api.merge(f"{CONFIGMAPS}/c", {"metadata": {"finalizers": None}})
    assert finished.status == 200
    assert (await api.get(f"{CONFIGMAPS}/c")).status == 404


async def test_a_pod_on_a_node_stays_until_the_kubelet_is_done(api: RawApi) -> None:
    await api.post(PODS, pod())
    await bind(api, "p", "node-1")
    marked = await api.delete(f"{PODS}/p")
    assert marked.meta["deletionGracePeriodSeconds"] == 30
    assert marked.meta["generation"] == 2
    sooner = await api.delete(f"{PODS}/p", gracePeriodSeconds=5)
    assert sooner.meta["deletionGracePeriodSeconds"] == 5
    later = await api.delete(f"{PODS}/p", gracePeriodSeconds=60)
    assert later.meta["deletionGracePeriodSeconds"] == 5
    last = await api.delete(f"{PODS}/p", gracePeriodSeconds=0)
    assert (last.object["kind"], last.meta["deletionGracePeriodSeconds"]) == ("Pod", 0)
    assert (await api.get(f"{PODS}/p")).status == 404


async def test_an_object_whose_owner_never_was_is_collected(api: RawApi) -> None:
    """A10: the JobSet went while its ConfigMap was being made."""
    reference = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "name": "nobody",
        "uid": "00000000-0000-4000-8000-000000000000",
    }
    child = await api.post(CONFIGMAPS, config_map("child", meta={"ownerReferences": [reference]}))
    assert child.status == 201
    await _gone(api, CONFIGMAPS, "child", child.meta["resourceVersion"])
