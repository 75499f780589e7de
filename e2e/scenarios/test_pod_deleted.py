"""A pod that was counted is deleted before the release: the gang waits for its replacement, too."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

TOLD_TO_STOP = 143


async def test_the_gang_waits_for_the_replacement(world: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(node, 3)
        workers = gangs.workers(world.image, jobs=2, pods=2, resources=seats.request, backoff_limit=6)
        await world.apply(gangs.gang(workers))
        held = [pod for pod in await world.until_held(3) if predicates.held(pod)]
        await world.until_condition(names.REASON_WAITING, "3/4 pods started")
        await seats.set_capacity(node, 2)
        lost = predicates.name_of(held[0])
        await world.delete_pod(lost)

        await world.until(lambda _: lost in world.ends)
        assert world.ends[lost]["exitCode"] == TOLD_TO_STOP
        await world.until_condition(names.REASON_WAITING, "2/4 pods started")
        # The two that were not lost still wait, and so does whoever comes.
        await seats.set_capacity(node, 3)
        await world.until_held(3)
        await seats.set_capacity(node, 4)
        await world.until_running(4)
        await world.check_order(4)
