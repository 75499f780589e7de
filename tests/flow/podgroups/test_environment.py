"""What all tests of pod groups stand on: the real scheduler, the real API server's gates, nodes of a test's own."""

import asyncio
from collections.abc import Iterable
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import PODS
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment

Json = dict[str, Any]


async def open_by_hand(stage: GroupEnvironment, pods: Iterable[Json]) -> None:
    """The patch that takes our gate away and no other."""
    less = {"schedulingGates": [{"$patch": "delete", "name": names.POD_GROUP_GATE}]}

    async def one(pod: Json) -> None:
        body = {"metadata": {"uid": pod["metadata"]["uid"], "annotations": {"opened": "1"}}, "spec": less}
        await stage.client.patch(PODS, pod["metadata"]["name"], stage.namespace, body=body, patch=PatchType.STRATEGIC)

    await asyncio.gather(*map(one, pods))


async def test_the_scheduler_binds_a_pod_as_soon_as_the_patch_has_removed_its_gate(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "4"}, controller=False) as stage:
        held = await stage.create(manifests.pod("a", "ring"), manifests.pod("b", "ring", gates=["other.dev/gate"]))
        assert all(map(gated, held))
        await stage.create(manifests.pod("free"))
        await stage.until_bound(1)  # the scheduler has seen all of them
        assert [one["metadata"]["name"] for one in stage.pods.all() if bound(one)] == ["free"]
        await open_by_hand(stage, held)
        # the two patches go side by side: "a" may be bound, and seen bound, before "b" is patched
        now = await stage.until(lambda pods: sum(map(bound, pods)) == 2 and not any(map(gated, pods)))
        other = next(one for one in now if one["metadata"]["name"] == "b")
        assert other["spec"]["schedulingGates"] == [{"name": "other.dev/gate"}]
        assert not bound(other)


async def test_nodes_have_what_a_test_gives_them_and_belong_to_it_alone(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"small": "1"}, controller=False, webhook=False) as stage:
        tainted = await stage.add_node("tainted", "8", taints=[("busy", "yes", "NoSchedule")])
        full = await stage.add_node("gpu", "4", more={"example.com/gpu": "2"}, labels={"zone": "a"}, pods=1)
        await stage.create(
            manifests.pod("one", requests={"example.com/gpu": "2"}),
            manifests.pod("two", cpu="1"),
            manifests.pod("three", cpu="1"),
            at_once=1,
        )
        await stage.until_bound(2)
        places = {one["metadata"]["name"]: one["spec"].get("nodeName") for one in stage.pods.all()}
        assert places == {"one": full, "two": stage.nodes["small"], "three": None}
        easy = [{"key": "busy", "operator": "Exists"}]
        await stage.create(manifests.pod("four", tolerations=easy))
        found = await stage.until_bound(3)
        assert {one["spec"].get("nodeName") for one in found if one["metadata"]["name"] == "four"} == {tainted}


@pytest.mark.parametrize("kind", ["Job", "ReplicaSet", "StatefulSet", "Deployment"])
async def test_pods_of_every_kind_of_owner_are_held(make_stage: MakeGroupEnvironment, kind: str) -> None:
    async with make_stage(nodes={"n": "8"}, controller=False) as stage:
        template = manifests.job("w", "ring", 2)["spec"]["template"]
        if kind == "Job":
            await stage.apply(manifests.job("w", "ring", 2))
        else:
            template["metadata"]["labels"]["app"] = "w"
            template["spec"] |= {"restartPolicy": "Always"}
            spec = {"replicas": 2, "selector": {"matchLabels": {"app": "w"}}, "template": template}
            spec |= {"podManagementPolicy": "Parallel"} if kind == "StatefulSet" else {}
            await stage.apply({"apiVersion": "apps/v1", "kind": kind, "metadata": {"name": "w"}, "spec": spec})
        found = await stage.until(lambda pods: len(pods) == 2)
        assert all(map(gated, found))
        assert {one["metadata"]["labels"][names.POD_GROUP_LABEL] for one in found} == {stage.label("ring")}


async def test_played_kubelets_run_what_the_real_scheduler_binds(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(kubelets=True, nodes={"n": "2"}, controller=False) as stage:
        held = await stage.create(*(manifests.pod(name, "ring") for name in "abc"))
        await open_by_hand(stage, held)
        await stage.until(lambda pods: sum(map(manifests.runs, pods)) == 2)
        await stage.remove_node("n")
        await stage.until(lambda pods: len(pods) == 1)
