"""Merge, JSON and strategic merge patches: the same assertions against the embedded and the real API server."""

from __future__ import annotations

from typing import Any

import pytest

from tests.contract.apiserver.api import (
    CONFIGMAPS,
    JSON_PATCH,
    Gangs,
    RawApi,
    config_map,
)


async def test_a_patch_may_name_the_version_it_wants_to_change(api: RawApi) -> None:
    """That is how a compare-and-swap is written as a patch."""
    first = await api.post(CONFIGMAPS, config_map(a="1"))
    version = first.meta["resourceVersion"]
    won = await api.merge(f"{CONFIGMAPS}/c", {"metadata": {"resourceVersion": version}, "data": {"a": "2"}})
    lost = await api.merge(f"{CONFIGMAPS}/c", {"metadata": {"resourceVersion": version}, "data": {"a": "3"}})
    assert (won.status, lost.status, lost.reason) == (200, 409, "Conflict")


@pytest.mark.parametrize(
    "operation",
    [
        {"op": "test", "path": "/data/a", "value": "2"},
        {"op": "remove", "path": "/data/missing"},
        {"op": "add", "path": "/nothing/here", "value": "1"},
        {"op": "frobnicate", "path": "/data/a"},
    ],
)
async def test_json_patches_that_cannot_be_applied_change_nothing(api: RawApi, operation: Any) -> None:
    first = await api.post(CONFIGMAPS, config_map(a="1"))
    operations = [{"op": "add", "path": "/data/b", "value": "2"}, operation]
    refused = await api.call("PATCH", f"{CONFIGMAPS}/c", operations, JSON_PATCH)
    assert (refused.status, refused.reason) == (422, "Invalid")
    assert (await api.get(f"{CONFIGMAPS}/c")).object == first.object


async def test_apply_creates_and_merges_and_keeps_what_it_does_not_name(api: RawApi) -> None:
    await api.post(CONFIGMAPS, config_map(x="1", z="3"))
    applied = await api.apply(f"{CONFIGMAPS}/c", config_map(x="2", y="2"), force=True)
    assert (applied.status, applied.object["data"]) == (200, {"x": "2", "y": "2", "z": "3"})
    again = await api.apply(f"{CONFIGMAPS}/c", config_map(x="2", y="2"))
    assert (again.status, again.object["data"]) == (200, applied.object["data"])
    assert (await api.apply(f"{CONFIGMAPS}/new", config_map("new", a="1"))).status == 201


async def test_conditions_are_applied_by_their_type(api: RawApi, gangs: Gangs) -> None:
    """A9: our condition beside the JobSet controller's."""
    await api.post(gangs.path, gangs.gang())
    await api.merge(f"{gangs.path}/g/status", {"status": {"conditions": [{"type": "Theirs", "status": "True"}]}})
    ours = gangs.gang() | {"status": {"conditions": [{"type": "Ours", "status": "False", "reason": "Waiting"}]}}
    applied = await api.apply(f"{gangs.path}/g/status", ours, "gate", force=True)
    assert [item["type"] for item in applied.object["status"]["conditions"]] == ["Theirs", "Ours"]
