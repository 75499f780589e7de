"""A node that is lost while a gang is being placed: the gang is made whole again, or taken back whole."""

from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import Json, bound, gated, of_group
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.groups import OffsetClock

PROBE = Groups(capacity_check=CapacityCheck.PROBE)
RING = "ring"


def alive(pods: list[Json]) -> list[Json]:
    return [one for one in of_group(pods, RING) if "deletionTimestamp" not in one["metadata"]]


async def test_a_gang_that_was_sure_of_its_room_survives_the_loss_of_a_part_of_it(
    make_stage: MakeGroupEnvironment,
) -> None:
    """At the moment of its first binding: whatever had happened by then, in the end all of it has a node."""
    clock = OffsetClock()
    async with make_stage(nodes={"n": "4", "m": "4"}, kubelets=True, controller=False) as stage:
        stage.start_controller(clock=clock)
        await stage.make_group(RING, 8, wait=3)
        await stage.apply(manifests.replica_set(RING, 8))
        await stage.until_bound(1, RING)
        await stage.remove_node("m")
        await stage.until(lambda pods: len(alive(pods)) == 8)
        await stage.add_node("o", "4")
        await stage.until(lambda pods: sum(map(bound, alive(pods))) == 8)
        assert not any(map(gated, alive(stage.pods.all())))
