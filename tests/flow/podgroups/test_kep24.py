"""What KEP-24 says of its groups beyond the others: all sorts of members, Events, quotas, changed PodGroups (G4)."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import POD_GROUPS, RESOURCEQUOTAS
from jobset_gate.podgroups import podgroup_status
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated, runs
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment

Json = dict[str, Any]
KEP = Format.KEP_24
KIND = POD_GROUPS[names.KEP24_GROUP]


def pod(name: str, group: str = "ring", **more: Any) -> Json:
    return manifests.pod(name, group, KEP, **more)


def reason(group: Json) -> str:
    return str(podgroup_status.group_condition(group.get("status") or {}).get("reason", ""))


def message(group: Json) -> str:
    return str(podgroup_status.group_condition(group.get("status") or {}).get("message", ""))


async def edit(stage: GroupEnvironment, name: str, **spec: Any) -> None:
    await stage.client.patch(KIND, name, stage.namespace, body={"spec": spec}, patch=PatchType.MERGE)


async def test_a_pod_group_that_is_changed_after_opening_is_not_followed(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "8"}, kubelets=True) as stage:
        await stage.make_group("ring", 2, KEP)
        await stage.create(pod("a"), pod("b"))
        await stage.until_group("ring", lambda it: reason(it) == names.REASON_RUNNING, KEP)
        before = {one["metadata"]["uid"] for one in stage.pods.all()}
        await edit(stage, "ring", minMembers=7, totalResources={"cpu": "100"})
        await stage.create(pod("late"))
        found = await stage.until(lambda pods: sum(map(runs, pods)) == 3)
        assert before <= {one["metadata"]["uid"] for one in found}
        decided = await stage.record("ring", KEP)
        assert decided is not None
        assert (decided.generation, decided.minimum) == (1, 2)
        assert reason(await stage.group("ring", KEP)) == names.REASON_RUNNING


@pytest.mark.parametrize("when", ["bound", "gathering"])
async def test_a_pod_group_that_is_deleted_harms_no_pod(make_stage: MakeGroupEnvironment, when: str) -> None:
    async with make_stage(nodes={"n": "8"}, kubelets=True) as stage:
        await stage.make_group("ring", 2 if when == "bound" else 3, KEP)
        await stage.create(pod("a"), pod("b"))
        if when == "bound":
            await stage.until_group("ring", lambda it: reason(it) == names.REASON_RUNNING, KEP)
        else:
            await stage.until_group("ring", lambda it: reason(it) == names.REASON_GATHERING, KEP)
        before = {one["metadata"]["uid"] for one in stage.pods.all()}
        await stage.client.delete(KIND, "ring", stage.namespace)
        await stage.create(pod("late"))
        reported = await stage.until_event("late", names.REASON_POD_GROUP_MISSING)
        assert "which does not exist" in reported
        there = [one for one in stage.pods.all() if one["metadata"]["uid"] in before]
        assert len(there) == 2
        assert not any(one["metadata"].get("deletionTimestamp") for one in there)
        assert [runs(one) for one in there] == [when == "bound"] * 2
        assert gated(next(one for one in stage.pods.all() if one["metadata"]["name"] == "late"))


async def test_total_resources_must_be_left_of_the_namespaces_quota(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "32"}) as stage:
        quota: Json = {"metadata": {"name": "team"}, "spec": {"hard": {"requests.cpu": "7"}}}
        await stage.client.create(RESOURCEQUOTAS, quota, stage.namespace)
        await stage.until_object(RESOURCEQUOTAS, "team", lambda it: "used" in (it.get("status") or {}))
        await stage.create(manifests.pod("others", cpu="3"))
        # More than the quota would leave in whatever order its watch and that of the pods report what is charged.
        await stage.make_group("ring", 2, KEP, resources={"cpu": "10"})
        await stage.create(pod("a"), pod("b"))  # charged for two of the four that are left
        why = "needs 10 cpu, 4 left in ResourceQuota team"
        await stage.until_group("ring", lambda it: message(it) == why, KEP)
        await stage.until_event("ring", names.REASON_WAITING_FOR_CAPACITY, "left in ResourceQuota team")
        assert sum(map(gated, stage.pods.all())) == 2
        more = {"spec": {"hard": {"requests.cpu": "13"}}}
        await stage.client.patch(RESOURCEQUOTAS, "team", stage.namespace, body=more, patch=PatchType.MERGE)
        await stage.until_bound(3)
