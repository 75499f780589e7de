"""Server-side apply and managedFields: the same assertions against the embedded and the real API server."""

from __future__ import annotations

from typing import Any

from tests.contract.apiserver.api import (
    APPLY,
    CONFIGMAPS,
    JSON_PATCH,
    Gangs,
    Json,
    RawApi,
    Reply,
    config_map,
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


async def test_force_takes_the_fields_over(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    forced = await api.apply(f"{CONFIGMAPS}/c", config_map(x="2"), "other", force=True)
    assert forced.object["data"] == {"x": "2"}
    assert owned(forced) == {("other", "Apply", ""): {"f:data": {"f:x": {}}}}


async def test_an_ordinary_write_takes_what_it_changes(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1", y="2"))
    changed = await api.merge(f"{CONFIGMAPS}/c", {"data": {"x": "9", "z": "3"}})
    assert owned(changed) == {
        ("applier", "Apply", ""): {"f:data": {"f:y": {}}},
        ("tester", "Update", ""): {"f:data": {"f:x": {}, "f:z": {}}},
    }


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


async def test_apply_wants_a_manager_and_no_managed_fields(api: RawApi) -> None:
    nameless = await api.call("PATCH", f"{CONFIGMAPS}/c", config_map(), APPLY)
    assert (nameless.status, nameless.causes) == (422, ["fieldManager"])
    entries = {"managedFields": [{"manager": "x", "operation": "Apply", "apiVersion": "v1"}]}
    assert (await api.apply(f"{CONFIGMAPS}/c", config_map(meta=entries))).status == 400


async def test_apply_can_name_the_version_it_wants_to_change(api: RawApi) -> None:
    await api.apply(f"{CONFIGMAPS}/c", config_map(x="1"))
    stale = await api.apply(f"{CONFIGMAPS}/c", config_map(meta={"resourceVersion": "1"}, x="2"))
    assert (stale.status, stale.reason) == (409, "Conflict")


async def test_yaml_can_be_applied(api: RawApi) -> None:
    text = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata:\n  when: '2026-01-01'\n"
    made = await api.apply(f"{CONFIGMAPS}/c", text)
    assert (made.status, made.object["data"]) == (201, {"when": "2026-01-01"})
