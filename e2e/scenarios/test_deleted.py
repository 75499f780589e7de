"""A gang that waits is deleted: every barrier heeds the signal, so nobody waits for the grace period of 30 s to end."""

from e2e import gangs
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate.kube.resources import JOBSETS

TOLD_TO_STOP = 143


async def test_waiting_pods_end_when_they_are_told_to(world: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(node, 3)
        await world.apply(gangs.gang(gangs.workers(world.image, jobs=2, pods=2, resources=seats.request)))
        await world.until_held(3)
        await world.client.delete(JOBSETS, "gang", world.namespace, propagation="Foreground")
        await world.until(lambda pods: pods == [])
        # Killed after the grace period would be 137.
        assert [end["exitCode"] for end in world.ends.values()] == [TOLD_TO_STOP] * 3
