"""What becomes of objects: the same assertions against the embedded and the real API server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from tests.contract.apiserver.api import (
    CONFIGMAPS,
    JSON_PATCH,
    PODS,
    Json,
    RawApi,
    Reply,
    bind,
    config_map,
    jobset,
    pod,
)


async def test_a_write_that_names_another_version_or_uid_conflicts(api: RawApi) -> None:
    """That is how a compare-and-swap is written: as an object, as a patch, or as the preconditions of a deletion."""
    path = f"{CONFIGMAPS}/c"
    first = (await api.post(CONFIGMAPS, config_map(a="1"))).object
    stored = await api.put(path, {**first, "data": {"a": "2"}})
    assert stored.status == 200
    stale = await api.put(path, {**first, "data": {"a": "3"}})
    assert stale.message.endswith("please apply your changes to the latest version and try again")
    old, now = ({"resourceVersion": it["resourceVersion"]} for it in (first["metadata"], stored.meta))
    refused = [
        stale,
        await api.put(path, config_map(meta={"uid": "another"})),
        await api.merge(path, {"metadata": old}),
    ]
    refused += [await api.delete(path, preconditions=it) for it in ({"uid": "another"}, old)]
    assert [(it.status, it.reason) for it in refused] == [(409, "Conflict")] * 5
    won = await api.merge(path, {"metadata": now, "data": {"a": "4"}})
    right = {"uid": won.meta["uid"], "resourceVersion": won.meta["resourceVersion"]}
    assert (won.status, (await api.delete(path, preconditions=right)).status) == (200, 200)
    assert (await api.delete(path)).status == 404


async def test_dry_run_stores_nothing(api: RawApi) -> None:
    made = await api.post(f"{CONFIGMAPS}?dryRun=All", config_map(a="1"))
    assert (made.status, bool(made.meta["uid"]), "resourceVersion" in made.meta) == (201, True, False)
    assert (await api.get(f"{CONFIGMAPS}/c")).status == 404
    stored = await api.post(CONFIGMAPS, config_map(a="1"))
    changed = await api.call(
        "PATCH", f"{CONFIGMAPS}/c?dryRun=All", [{"op": "replace", "path": "/data/a", "value": "2"}], JSON_PATCH
    )
    assert changed.object["data"] == {"a": "2"}
    assert (await api.get(f"{CONFIGMAPS}/c")).object == stored.object


SELECTED = {
    "labelSelector=tier%3Dfront": ["a"],
    "labelSelector=tier!%3Dfront,team": ["b"],
    "labelSelector=tier%20in%20(front,back)": ["a", "b"],
    "labelSelector=tier%20notin%20(front),team": ["b"],
    "labelSelector=team%20notin%20(x)&fieldSelector=metadata.name!%3Dkube-root-ca.crt": ["b", "c"],
    "labelSelector=!team,plain": ["c"],
    "fieldSelector=metadata.name%3Db": ["b"],
    "fieldSelector=metadata.name!%3Db&labelSelector=team": ["a"],
}


async def test_selectors_choose(api: RawApi) -> None:
    for name, labels in (
        ("a", {"tier": "front", "team": "x"}),
        ("b", {"tier": "back", "team": "y"}),
        ("c", {"plain": ""}),
    ):
        await api.post(CONFIGMAPS, config_map(name, meta={"labels": labels}))
    for query, names in SELECTED.items():
        listed = await api.get(f"{CONFIGMAPS}?{query}")
        assert [item["metadata"]["name"] for item in listed.object["items"]] == names, query


# --- Merge, JSON and strategic merge patches --------------------------------------------------------------------------


async def test_json_patches_that_cannot_be_applied_change_nothing(api: RawApi) -> None:
    first = await api.post(CONFIGMAPS, config_map(a="1"))
    for operation in (
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "remove", "path": "/data/missing"},
        {"op": "add", "path": "/nothing/here", "value": "1"},
        {"op": "frobnicate", "path": "/data/a"},
    ):
        operations = [{"op": "add", "path": "/data/b", "value": "2"}, operation]
        refused = await api.call("PATCH", f"{CONFIGMAPS}/c", operations, JSON_PATCH)
        assert (refused.status, refused.reason) == (422, "Invalid"), operation
        assert (await api.get(f"{CONFIGMAPS}/c")).object == first.object, operation


async def test_apply_creates_and_merges_and_keeps_what_it_does_not_name(api: RawApi) -> None:
    await api.post(CONFIGMAPS, config_map(x="1", z="3"))
    applied = await api.apply(f"{CONFIGMAPS}/c", config_map(x="2", y="2"), force=True)
    assert (applied.status, applied.object["data"]) == (200, {"x": "2", "y": "2", "z": "3"})
    again = await api.apply(f"{CONFIGMAPS}/c", config_map(x="2", y="2"))
    assert (again.status, again.object["data"]) == (200, applied.object["data"])
    assert (await api.apply(f"{CONFIGMAPS}/new", config_map("new", a="1"))).status == 201


async def test_conditions_are_applied_by_their_type(api: RawApi, jobsets: str) -> None:
    """A9: our condition and the JobSet controller's."""

    def condition(kind: str) -> Json:
        sent = {"status": "False", "reason": "Waiting", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}
        return {"status": {"conditions": [{"type": kind} | sent]}}

    await api.post(jobsets, jobset())
    await api.merge(f"{jobsets}/g/status", condition("Theirs"))
    applied = await api.apply(f"{jobsets}/g/status", jobset() | condition("Ours"), "gate", force=True)
    assert [item["type"] for item in applied.object["status"]["conditions"]] == ["Theirs", "Ours"]


# --- Custom kinds: pruning, defaults, status --------------------------------------------------------------------------


async def test_unknown_fields_are_pruned_with_a_warning(api: RawApi, jobsets: str) -> None:
    """A2: that is how a stock JobSet CRD loses our field."""
    made = await api.post(jobsets, jobset(gate={"timeout": 3}, replicatedJobs=[{"name": "a", "extra": 1}]))
    assert made.status == 201
    assert "gate" not in made.object["spec"]
    assert made.object["spec"]["replicatedJobs"] == [{"name": "a", "groupName": "default", "replicas": 1}]
    fields = ("spec.gate", "spec.replicatedJobs[0].extra")
    assert made.warnings == [f'299 - "unknown field \\"{it}\\""' for it in fields]


async def test_status_and_spec_have_their_own_endpoints(api: RawApi, jobsets: str) -> None:
    made = await api.post(jobsets, {**jobset(suspend=False), "status": {"restarts": 1}})
    assert "status" not in made.object
    status = {"metadata": {"labels": {"a": "b"}}, "spec": {"suspend": True}, "status": {"restarts": 2}}
    by_status = await api.merge(f"{jobsets}/g/status", status)
    assert (by_status.object["spec"]["suspend"], by_status.object["status"]) == (False, {"restarts": 2})
    assert "labels" not in by_status.meta
    by_main = await api.merge(f"{jobsets}/g", {"spec": {"suspend": True}, "status": {"restarts": 3}})
    assert (by_main.object["spec"]["suspend"], by_main.object["status"]) == (True, {"restarts": 2})
    assert [reply.meta["generation"] for reply in (made, by_status, by_main)] == [1, 1, 2]
    assert (await api.get(f"{jobsets}/g/status")).object == by_main.object


async def test_a_patch_of_a_status_is_held_to_its_version_and_to_no_uid(api: RawApi, jobsets: str) -> None:
    """So a uid in it does not keep it from another object of the same name."""
    old = await api.post(jobsets, jobset())
    await api.delete(f"{jobsets}/g")
    new = await api.post(jobsets, jobset())
    kind = {"apiVersion": old.object["apiVersion"], "kind": old.object["kind"]}

    async def patched(write: Callable[..., Awaitable[Reply]], restarts: int, **meta: str) -> int:
        body = {**kind, "metadata": {"name": "g", **meta}, "status": {"restarts": restarts}}
        return (await write(f"{jobsets}/g/status", body)).status

    for number, write in enumerate((api.apply, api.merge)):
        assert await patched(write, number, resourceVersion=old.meta["resourceVersion"]) == 409
        assert await patched(write, number, uid=old.meta["uid"], resourceVersion=old.meta["resourceVersion"]) == 409
        assert await patched(write, number, uid=old.meta["uid"]) == 200
    assert (await api.get(f"{jobsets}/g")).meta["uid"] == new.meta["uid"]
    refused = await api.merge(f"{jobsets}/g", {"metadata": {"uid": old.meta["uid"]}})
    assert (refused.status, set(refused.causes)) == (422, {"metadata.uid"})


# --- Watches ----------------------------------------------------------------------------------------------------------


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


# --- Deleting: preconditions, finalizers, grace, owners ---------------------------------------------------------------


async def _gone(api: RawApi, path: str, name: str, version: str) -> None:
    """Wait until an object is deleted."""
    async with api.watch(path, f"fieldSelector=metadata.name%3D{name}&resourceVersion={version}") as watch:
        await watch.until(name, "DELETED")


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
    # DELETE looks at the watch cache first; a pod that is not bound there is given a grace period of 0.
    bound = await api.get(f"{PODS}/p")
    await api.get(f"{PODS}/p?resourceVersion={bound.meta['resourceVersion']}")
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
