"""Pods on their way to a node: gates, their removal, binding. The same assertions against both API servers."""

from __future__ import annotations

import asyncio
import time

import msgspec

from jobset_gate.barrier import wire
from jobset_gate.sources import decode
from tests.contract.apiserver.api import PODS, STRATEGIC, Json, RawApi, Reply, bind, pod

OURS, THEIRS = "example.com/ours", "example.com/theirs"


def gates(*names: str) -> list[Json]:
    return [{"name": name} for name in names]


async def strategic(api: RawApi, path: str, body: Json) -> Reply:
    return await api.call("PATCH", path, body, STRATEGIC)


async def test_one_patch_takes_one_gate_off_and_leaves_the_other(api: RawApi) -> None:
    """With the UID as a precondition, and an annotation: how a group is admitted."""
    made = await api.post(PODS, pod(schedulingGates=gates(THEIRS, OURS)))
    opening: Json = {
        "metadata": {"uid": made.meta["uid"], "annotations": {"example.com/opened": "1"}},
        "spec": {"schedulingGates": [{"$patch": "delete", "name": OURS}]},
    }
    opened = await strategic(api, f"{PODS}/p", opening)
    assert opened.status == 200, opened.object
    assert opened.object["spec"]["schedulingGates"] == gates(THEIRS)
    assert opened.meta["annotations"] == {"example.com/opened": "1"}
    assert (await bind(api, "p", "node-1")).status == 409
    again = await strategic(api, f"{PODS}/p", opening)
    assert (again.status, again.meta["resourceVersion"]) == (200, opened.meta["resourceVersion"])


async def test_a_status_is_dated_by_the_clock_of_the_server(api: RawApi) -> None:
    """So the age of an event does not depend on when it arrives (A4)."""
    await api.post(PODS, pod())
    await asyncio.sleep(1 - time.time() % 1)  # dates have whole seconds
    start = int(time.time())
    reported = await strategic(api, f"{PODS}/p/status", {"status": {"phase": "Running"}})
    assert reported.status == 200, reported.object
    written_at = decode.written_at(msgspec.convert(reported.object, wire.Pod))
    assert written_at is not None
    assert start <= written_at <= time.time()


async def test_a_pod_is_released_from_its_owner_in_one_patch(api: RawApi) -> None:
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "11111111-2222-3333-4444-555555555555"}
    other = {**owner, "name": "k", "uid": "11111111-2222-3333-4444-666666666666"}
    meta = {
        "labels": {"selected": "yes", "kept": "yes"},
        "ownerReferences": [{**owner, "controller": True}, other],
        "finalizers": ["example.com/tracking", "example.com/kept"],
    }
    made = await api.post(PODS, pod(meta=meta, schedulingGates=gates(OURS)))
    assert made.status == 201, made.object
    released = await strategic(
        api,
        f"{PODS}/p",
        {
            "metadata": {
                "uid": made.meta["uid"],
                "labels": {"selected": None},
                "ownerReferences": [{"$patch": "delete", "uid": owner["uid"]}],
                "$deleteFromPrimitiveList/finalizers": ["example.com/tracking"],
            }
        },
    )
    assert released.status == 200, released.object
    assert released.meta["labels"] == {"kept": "yes"}
    assert [it["name"] for it in released.meta["ownerReferences"]] == ["k"]
    assert released.meta["finalizers"] == ["example.com/kept"]
    bare = {"ownerReferences": [{"$patch": "delete", "uid": other["uid"]}]}
    finalizers = {"$deleteFromPrimitiveList/finalizers": ["example.com/kept"]}
    last = await strategic(api, f"{PODS}/p", {"metadata": {**bare, **finalizers}})
    assert {"ownerReferences", "finalizers"}.isdisjoint(last.meta)


async def test_bound_pods_that_are_not_over_are_selected_by_fields(api: RawApi) -> None:
    """As a scheduler must see them: a pod appears when it is bound and disappears when it has ended."""
    query = "fieldSelector=spec.nodeName!=,status.phase!=Succeeded,status.phase!=Failed"
    for name in ("waits", "runs", "failed", "done"):
        await api.post(PODS, pod(name, meta={"finalizers": ["example.com/kept"]}))
    for name in ("runs", "failed", "done"):
        assert (await bind(api, name, "node-1")).status == 201
    for name, phase in (("runs", "Running"), ("failed", "Failed"), ("done", "Succeeded")):
        await api.merge(f"{PODS}/{name}/status", {"status": {"phase": phase}})
    listed = await api.get(f"{PODS}?{query}")
    assert [it["metadata"]["name"] for it in listed.object["items"]] == ["runs"]
    version = listed.meta["resourceVersion"]
    async with api.watch(PODS, f"resourceVersion={version}&{query}") as watch:
        await bind(api, "waits", "node-1")
        assert await watch.until("waits") == [("ADDED", "waits")]
        await api.merge(f"{PODS}/runs/status", {"status": {"phase": "Succeeded"}})
        assert await watch.until("runs") == [("DELETED", "runs")]
    for name in ("waits", "runs", "failed", "done"):
        await api.merge(f"{PODS}/{name}", {"metadata": {"finalizers": None}})


async def test_a_pod_gets_its_node_once_by_binding(api: RawApi) -> None:
    await api.post(PODS, pod())
    assert (await bind(api, "p", "node-1")).status == 201
    bound = await api.get(f"{PODS}/p")
    assert bound.object["spec"]["nodeName"] == "node-1"
    scheduled = bound.object["status"]["conditions"][0]
    assert (scheduled["type"], scheduled["status"]) == ("PodScheduled", "True")
    assert scheduled["lastTransitionTime"].endswith("Z")
    again = await bind(api, "p", "node-2")
    assert (again.status, again.reason) == (409, "Conflict")
    assert again.message.endswith('pod p is already assigned to node "node-1"')
