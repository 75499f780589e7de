"""A gang that waits is deleted: every barrier heeds the signal, so nobody waits for the grace period of 30 s to end."""

from e2e import facts, gangs
from e2e.nodes import Nodes
from e2e.world import World
from jobset_gate.kube.resources import JOBSETS

TOLD_TO_STOP = 143


async def test_waiting_pods_end_when_they_are_told_to(world: World, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    codes: dict[str, int] = {}

    def gone(pods: list[facts.Json]) -> bool:
        codes.update({facts.name_of(pod): end["exitCode"] for pod in pods if (end := facts.barrier_end(pod))})
        return pods == []

    async with nodes.seats(world.namespace) as seats:
        await seats.put(node, 3)
        await world.apply(gangs.gang(gangs.workers(world.image, jobs=2, pods=2, resources=seats.one)))
        await world.until_held(3)
        await world.client.delete(JOBSETS, "gang", world.namespace, propagation="Foreground")
        await world.until(gone)
        # Killed after the grace period would be 137.
        assert list(codes.values()) == [TOLD_TO_STOP] * 3
