"""Custom kinds: pruning, defaults, status. The same assertions against both API servers."""

from __future__ import annotations

import pytest

from tests.contract.apiserver.api import Gangs, RawApi


async def test_unknown_fields_are_pruned_with_a_warning(api: RawApi, gangs: Gangs) -> None:
    """A2: that is how a stock JobSet CRD loses our field."""
    made = await api.post(gangs.path, gangs.gang(gate={"timeout": 3}, jobs=[{"name": "a", "extra": 1}]))
    assert made.status == 201
    assert made.object["spec"] == {"mode": "A", "jobs": [{"name": "a", "replicas": 1}]}
    assert made.warnings == ['299 - "unknown field \\"spec.gate\\""', '299 - "unknown field \\"spec.jobs[0].extra\\""']


async def test_status_and_spec_have_their_own_endpoints(api: RawApi, gangs: Gangs) -> None:
    made = await api.post(gangs.path, {**gangs.gang(), "status": {"restarts": 1}})
    assert "status" not in made.object
    status = {"metadata": {"labels": {"a": "b"}}, "spec": {"mode": "B"}, "status": {"restarts": 2}}
    by_status = await api.merge(f"{gangs.path}/g/status", status)
    assert (by_status.object["spec"], by_status.object["status"]) == ({"mode": "A"}, {"restarts": 2})
    assert "labels" not in by_status.meta
    by_main = await api.merge(f"{gangs.path}/g", {"spec": {"mode": "B"}, "status": {"restarts": 3}})
    assert (by_main.object["spec"], by_main.object["status"]) == ({"mode": "B"}, {"restarts": 2})
    assert [reply.meta["generation"] for reply in (made, by_status, by_main)] == [1, 1, 2]
    assert (await api.get(f"{gangs.path}/g/status")).object == by_main.object


@pytest.mark.parametrize("how", ["apply", "merge"])
async def test_a_patch_of_a_status_is_held_to_its_version_and_to_no_uid(api: RawApi, gangs: Gangs, how: str) -> None:
    """So a uid in it does not keep it from another object of the same name."""
    old = await api.post(gangs.path, gangs.gang())
    await api.delete(f"{gangs.path}/g")
    new = await api.post(gangs.path, gangs.gang())
    kind = {"apiVersion": old.object["apiVersion"], "kind": old.object["kind"]}

    async def patched(**meta: str) -> int:
        body = {**kind, "metadata": {"name": "g", **meta}, "status": {"restarts": 1}}
        write = api.apply if how == "apply" else api.merge
        return (await write(f"{gangs.path}/g/status", body)).status

    assert await patched(resourceVersion=old.meta["resourceVersion"]) == 409
    assert await patched(uid=old.meta["uid"], resourceVersion=old.meta["resourceVersion"]) == 409
    assert await patched(uid=old.meta["uid"]) == 200
    assert (await api.get(f"{gangs.path}/g")).meta["uid"] == new.meta["uid"]
    refused = await api.merge(f"{gangs.path}/g", {"metadata": {"uid": old.meta["uid"]}})
    assert (refused.status, set(refused.causes)) == (422, {"metadata.uid"})
