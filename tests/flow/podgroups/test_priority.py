"""A group of higher priority among those that are tried, and its limit while room is made for it (G3, G4)."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import NODES, Resource
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import of_group
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import bound_count, create_group, members, until_satisfied

PRIORITY_CLASSES = Resource("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)
LOW, HIGH = "low", "high"


@asynccontextmanager
async def priorities(stage: GroupEnvironment) -> AsyncIterator[None]:
    """Classes of the cluster, by the stage's own names for them."""
    for name, value in ((LOW, 1), (HIGH, 9)):
        made = {"metadata": {"name": _class(stage, name)}, "value": value}
        await stage.client.create(PRIORITY_CLASSES, made)
    try:
        yield
    finally:
        for name in (LOW, HIGH):
            await stage.client.delete(PRIORITY_CLASSES, _class(stage, name))


def _class(stage: GroupEnvironment, name: str) -> str:
    return f"{stage.namespace}-{name}"


async def test_it_ends_the_try_of_a_lower_one_that_is_in_its_way(make_stage: MakeGroupEnvironment) -> None:
    """The lower one's own rule keeps it from ever being whole, and its limit is half an hour."""
    async with make_stage(nodes={"n": "4"}, kubelets=True) as stage, priorities(stage):
        term = {"labelSelector": {"matchLabels": {names.PLUGINS_NAME: "low"}}, "topologyKey": "kubernetes.io/hostname"}
        alone = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}}
        await stage.make_group("low", 2, wait=1800)
        template = {"affinity": alone, "priorityClassName": _class(stage, LOW)}
        await stage.apply(stage.here(manifests.job("low", "low", 2, template=template)))
        await stage.until_bound(1, "low")
        await create_group(stage, "high", 4, priorityClassName=_class(stage, HIGH))
        stage.clock.forward(10)
        await stage.until_bound(4, "high")
        found = await stage.record("low")
        assert found is not None
        assert found.why == "1 of 2 pods were bound when a group of higher priority came"


async def test_while_its_victims_end_its_limit_does_not_run(make_stage: MakeGroupEnvironment) -> None:
    """They write a checkpoint, say, and take longer than the limit: it would be taken back, and kill others again."""
    async with make_stage(nodes={"n": "2"}) as stage, priorities(stage):
        await create_group(stage, "low", 2, priorityClassName=_class(stage, LOW), terminationGracePeriodSeconds=600)
        await until_satisfied(stage, "low")
        await stage.make_group("high", 2, wait=5)
        await stage.create(*members("high", 2, priorityClassName=_class(stage, HIGH)))

        def nominated(pods: list[manifests.Json]) -> bool:
            return all(it["status"].get("nominatedNodeName") for it in of_group(pods, "high"))

        await stage.until(nominated)
        stage.clock.forward(600)
        # Something has changed, and a group that comes then shows that the controller has looked at everybody since.
        await stage.client.patch(
            NODES, stage.nodes["n"], body={"metadata": {"labels": {"seen": "now"}}}, patch=PatchType.MERGE
        )
        await stage.add_node("m", "100m", labels={"pool": "m"})
        await stage.make_group("shown", 1)
        await stage.create(*members("shown", 1, cpu="10m", nodeSelector={"pool": "m"}))
        await stage.until_bound(1, "shown")
        for number in range(2):
            await stage.delete_pod(f"low-{number}", grace_seconds=0)
        pods = await stage.until_bound(2, "high")
        assert bound_count(pods, "low") == 0
        await until_satisfied(stage, "high")
        found = await stage.record("high")
        assert found is not None
        assert (found.generation, found.rolled_back) == (1, 0)
