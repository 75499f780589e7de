"""A node that is lost while a gang is being placed: the gang is made whole again, or taken back whole."""

from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import Json, bound, gated, of_group
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import OffsetClock, bound_count, until_satisfied

PROBE = Groups(capacity_check=CapacityCheck.PROBE)
RING = "ring"


async def workers(stage: GroupEnvironment, count: int) -> None:
    """A ReplicaSet replaces at once what is lost; a Job would wait ten seconds."""
    template = manifests.job("w", RING, 1)["spec"]["template"]
    template["metadata"]["labels"]["app"] = RING
    template["spec"] |= {"restartPolicy": "Always"}
    spec = {"replicas": count, "selector": {"matchLabels": {"app": RING}}, "template": template}
    await stage.apply({"apiVersion": "apps/v1", "kind": "ReplicaSet", "metadata": {"name": RING}, "spec": spec})


def alive(pods: list[Json]) -> list[Json]:
    return [one for one in of_group(pods, RING) if "deletionTimestamp" not in one["metadata"]]


async def being_placed(stage: GroupEnvironment) -> set[str]:
    """Three of four have a node, and one is to be lost. Gives the UIDs of all."""
    await workers(stage, 4)
    pods = await stage.until_bound(3, RING)
    return {one["metadata"]["uid"] for one in pods}


async def test_what_was_lost_is_replaced_and_the_gang_is_whole_when_a_node_comes(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "2", "m": "1"}, settings=PROBE, kubelets=True) as stage:
        await stage.make_group(RING, 4)
        before = await being_placed(stage)
        await stage.remove_node("m")

        def replaced(pods: list[Json]) -> bool:
            """The one that has come for the one that was lost is not held: the gang is open."""
            new = [one for one in alive(pods) if one["metadata"]["uid"] not in before]
            return len(alive(pods)) == 4 and len(new) == 1 and not any(map(gated, new))

        pods = await stage.until(replaced)
        assert bound_count(pods, RING) == 2
        await stage.add_node("o", "2")
        await stage.until(lambda pods: sum(map(bound, alive(pods))) == 4)
        await until_satisfied(stage, RING)
        found = await stage.record(RING)
        assert found is not None
        assert (found.generation, found.rolled_back) == (1, 0)


async def test_a_gang_that_was_sure_of_its_room_survives_the_loss_of_a_part_of_it(
    make_stage: MakeGroupEnvironment,
) -> None:
    """At the moment of its first binding: whatever had happened by then, in the end all of it has a node."""
    clock = OffsetClock()
    async with make_stage(nodes={"n": "4", "m": "4"}, kubelets=True, controller=False) as stage:
        stage.start_controller(clock=clock)
        await stage.make_group(RING, 8, wait=3)
        await workers(stage, 8)
        await stage.until_bound(1, RING)
        await stage.remove_node("m")
        await stage.until(lambda pods: len(alive(pods)) == 8)
        await stage.add_node("o", "4")
        await stage.until(lambda pods: sum(map(bound, alive(pods))) == 8)
        assert not any(map(gated, alive(stage.pods.all())))
