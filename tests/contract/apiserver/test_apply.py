"""Server-side apply and managedFields: the same assertions against the embedded and the real API server."""

from __future__ import annotations

from typing import Any

from tests.contract.apiserver.api import (
    APPLY,
    CONFIGMAPS,
    JSON_PATCH,
    PODS,
    Gangs,
    Json,
    RawApi,
    Reply,
    config_map,
    pod,
)


def owned(reply: Reply) -> dict[tuple[str, str, str], Any]:
    """(manager, operation, subresource) -> what it owns."""
    entries: list[Json] = reply.meta.get("managedFields", [])
    return {(item["manager"], item["operation"], item.get("subresource", "")): item["fieldsV1"] for item in entries}


async def test_apply_makes_an_object_and_owns_what_it_says(api: RawApi) -> None:
    made = await api.apply(f"{CONFIGMAPS}/c", config_map(meta={"labels": {"a": "b"}}, x="1"))
    assert made.status == 201
    assert owned(made) == {
        ("applier", "Apply", ""): {"f:data": {"f:x": {}}, "f:metadata": {"f:labels": {"f:a": {}}}},
    }


async def test_applying_the_same_again_changes_nothing(api: RawApi) -> None:
    made = await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    again = await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    assert (again.status, again.object) == (200, made.object)


async def test_what_the_applier_no_longer_says_goes(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(meta={"labels": {"a": "b"}}, x="1", y="2"))
    left = await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    assert left.object["data"] == {"x": "1"}
    assert "labels" not in left.meta


async def test_what_another_owns_too_stays(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1", y="2"))
    await api.apply(f"{CONFIGMAPS}/c", config_map(y="2"), "other")
    left = await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    assert left.object["data"] == {"x": "1", "y": "2"}
    assert owned(left)["other", "Apply", ""] == {"f:data": {"f:y": {}}}


async def test_what_nobody_owns_stays(api: RawApi) -> None:
    """Merging leaves alone what the configuration does not speak of."""
    await api.post(CONFIGMAPS, config_map(x="1", z="3"))
    applied = await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    assert applied.object["data"] == {"x": "1", "z": "3"}


async def test_a_different_value_of_anothers_field_conflicts(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    refused = await api.apply(f"{CONFIGMAPS}/c", config_map(x="2", y="2"), "other")
    assert (refused.status, refused.reason, refused.causes) == (409, "Conflict", [".data.x"])
    assert refused.message == 'Apply failed with 1 conflict: conflict with "applier": .data.x'


async def test_conflicts_of_several_owners_are_told_together(api: RawApi) -> None:
    await api.post(CONFIGMAPS, config_map(x="1", y="1"))
    await api.apply(f"{CONFIGMAPS}/c", config_map(y="1"))
    refused = await api.apply(f"{CONFIGMAPS}/c", config_map(x="2", y="2"), "other")
    assert sorted(refused.causes) == [".data.x", ".data.y", ".data.y"]
    # Which owner is named first is chance.
    assert refused.message.startswith("Apply failed with 3 conflicts: conflicts with ")
    assert 'conflicts with "applier":\n- .data.y' in refused.message
    assert 'conflicts with "tester" using v1:\n- .data.x\n- .data.y' in refused.message


async def test_force_takes_the_fields_over(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    forced = await api.apply(f"{CONFIGMAPS}/c", config_map(x="2"), "other", force=True)
    assert forced.object["data"] == {"x": "2"}
    assert owned(forced) == {("other", "Apply", ""): {"f:data": {"f:x": {}}}}


async def test_the_same_value_is_shared(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    shared = await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"), "other")
    assert shared.status == 200
    assert {manager for manager, _, _ in owned(shared)} == {"applier", "other"}


async def test_an_ordinary_write_takes_what_it_changes(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1", y="2"))
    changed = await api.merge(f"{CONFIGMAPS}/c", {"data": {"x": "9", "z": "3"}})
    assert owned(changed) == {
        ("applier", "Apply", ""): {"f:data": {"f:y": {}}},
        ("tester", "Update", ""): {"f:data": {"f:x": {}, "f:z": {}}},
    }


async def test_the_order_of_merged_list_items(api: RawApi, gangs: Gangs) -> None:
    """New items come last, shared ones in the configuration's order."""
    await api.post(gangs.path, gangs.gang(jobs=[{"name": name} for name in "abc"]))
    config = gangs.gang(jobs=[{"name": name} for name in "dcxa"])
    merged = await api.apply(f"{gangs.path}/g", config)
    assert [item["name"] for item in merged.object["spec"]["jobs"]] == ["b", "d", "c", "x", "a"]


async def test_list_items_belong_to_their_managers(api: RawApi, gangs: Gangs) -> None:
    await api.apply(f"{gangs.path}/g", gangs.gang(jobs=[{"name": "a", "replicas": 2}, {"name": "b"}]))
    both = await api.apply(f"{gangs.path}/g", gangs.gang(jobs=[{"name": "c"}]), "other")
    item: Json = {".": {}, "f:name": {}}
    assert owned(both) == {
        ("applier", "Apply", ""): {
            "f:spec": {"f:jobs": {'k:{"name":"a"}': {**item, "f:replicas": {}}, 'k:{"name":"b"}': item}}
        },
        ("other", "Apply", ""): {"f:spec": {"f:jobs": {'k:{"name":"c"}': item}}},
    }
    left = await api.apply(f"{gangs.path}/g", gangs.gang(jobs=[{"name": "a"}]))
    assert left.object["spec"]["jobs"] == [{"name": "a", "replicas": 1}, {"name": "c", "replicas": 1}]


async def test_status_conditions_by_apply(api: RawApi, gangs: Gangs) -> None:
    """A9: our condition beside the JobSet controller's, each with its own owner."""
    await api.post(gangs.path, gangs.gang())
    theirs = {"status": {"conditions": [{"type": "Theirs", "status": "True"}]}}
    await api.merge(f"{gangs.path}/g/status", theirs)
    ours = {**gangs.gang(), "status": {"conditions": [{"type": "Ours", "status": "False", "reason": "Waiting"}]}}
    del ours["spec"]
    applied = await api.apply(f"{gangs.path}/g/status", ours, "gate", force=True)
    assert [item["type"] for item in applied.object["status"]["conditions"]] == ["Theirs", "Ours"]
    item: Json = {".": {}, "f:reason": {}, "f:status": {}, "f:type": {}}
    assert owned(applied)["gate", "Apply", "status"] == {"f:status": {"f:conditions": {'k:{"type":"Ours"}': item}}}
    await api.merge(f"{gangs.path}/g/status", theirs)
    gone = await api.apply(f"{gangs.path}/g/status", {**ours, "status": {}}, "gate")
    # A merge patch replaces lists: it took our condition away, as the real server would let it.
    assert [item["type"] for item in gone.object["status"]["conditions"]] == ["Theirs"]


async def test_a_condition_that_is_no_longer_applied_goes(api: RawApi, gangs: Gangs) -> None:
    await api.post(gangs.path, gangs.gang())
    for manager in ("gate", "other"):
        said = {**gangs.gang(), "status": {"conditions": [{"type": manager, "status": "True"}]}}
        await api.apply(f"{gangs.path}/g/status", said, manager)
    left = await api.apply(f"{gangs.path}/g/status", {**gangs.gang(), "status": {}}, "gate")
    assert [item["type"] for item in left.object["status"]["conditions"]] == ["other"]


async def test_applied_status_does_not_touch_the_spec_nor_own_it(api: RawApi, gangs: Gangs) -> None:
    await api.post(gangs.path, gangs.gang(mode="A"))
    body = {**gangs.gang(meta={"labels": {"a": "b"}}, mode="B"), "status": {"restarts": 1}}
    applied = await api.apply(f"{gangs.path}/g/status", body, "gate")
    assert (applied.object["spec"], applied.object["status"]) == ({"mode": "A"}, {"restarts": 1})
    assert "labels" not in applied.meta
    assert owned(applied)["gate", "Apply", "status"] == {"f:status": {"f:restarts": {}}}


async def test_managed_fields_can_be_reset_and_set(api: RawApi) -> None:
    """A2 depends on it: a second patch gives the owners back as they were."""
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    before = (await api.get(f"{CONFIGMAPS}/c")).meta["managedFields"]
    await api.merge(f"{CONFIGMAPS}/c", {"data": {"x": "2", "y": "2"}})
    restored = await api.merge(f"{CONFIGMAPS}/c", {"metadata": {"managedFields": before}})
    assert restored.meta["managedFields"] == before
    assert (await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))).status == 200
    forget = [{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}]
    reset = await api.call("PATCH", f"{CONFIGMAPS}/c", forget, JSON_PATCH)
    assert reset.status == 200
    assert "managedFields" not in reset.meta


async def test_apply_wants_a_manager_a_matching_name_and_no_managed_fields(api: RawApi) -> None:
    nameless = await api.call("PATCH", f"{CONFIGMAPS}/c", config_map(), APPLY)
    assert (nameless.status, nameless.causes) == (422, ["fieldManager"])
    assert (await api.apply(f"{CONFIGMAPS}/c", config_map("another"))).status == 400
    entries = {"managedFields": [{"manager": "x", "operation": "Apply", "apiVersion": "v1"}]}
    assert (await api.apply(f"{CONFIGMAPS}/c", config_map(meta=entries))).status == 400


async def test_apply_can_name_the_version_it_wants_to_change(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    stale = await api.apply(f"{CONFIGMAPS}/c", config_map(meta={"resourceVersion": "1"}, x="2"))
    assert (stale.status, stale.reason) == (409, "Conflict")


async def test_a_configuration_must_fit_the_schema(api: RawApi, gangs: Gangs) -> None:
    unknown = await api.apply(f"{gangs.path}/g", gangs.gang(nothing=1))
    assert ".spec.nothing: field not declared in schema" in unknown.message
    wrong = await api.apply(f"{gangs.path}/g", gangs.gang(replicas="many"))
    assert ".spec.replicas: expected numeric (int or float), got string" in wrong.message
    twice = await api.apply(f"{gangs.path}/g", gangs.gang(jobs=[{"name": "a"}, {"name": "a"}]))
    assert '.spec.jobs: duplicate entries for key [name="a"]' in twice.message
    assert {unknown.status, wrong.status, twice.status} == {500}


async def test_yaml_can_be_applied(api: RawApi) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  when: '2026-01-01'\n"
    made = await api.apply(f"{CONFIGMAPS}/c", text)
    assert (made.status, made.object["data"]) == (201, {"when": "2026-01-01"})


async def test_pods_merge_by_the_keys_of_their_lists(api: RawApi) -> None:
    env = [{"name": "A", "value": "1"}]
    first = pod(containers=[{"name": "main", "image": "busybox:1.37", "env": env}])
    await api.apply(f"{PODS}/p", first)
    labelled: Json = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "labels": {"a": "b"}}}
    done = await api.apply(f"{PODS}/p", labelled, "other")
    assert done.object["spec"]["containers"][0]["env"] == env
    assert 'k:{"name":"main"}' in owned(done)["applier", "Apply", ""]["f:spec"]["f:containers"]
