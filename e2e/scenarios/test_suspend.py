"""Suspended and resumed, as Kueue does it: Jobs and restart attempt stay the same, the old release is not valid."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


async def test_a_resumed_gang_is_held_again(world: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(node, 4)
        workers = gangs.workers(world.image, jobs=2, pods=2, resources=seats.request)
        await world.apply(gangs.gang(workers, suspend=True))
        await world.until_jobset(lambda jobset: predicates.condition(jobset, "Suspended").get("status") == "True")
        assert world.pods.all() == []
        await world.suspend(suspended=False)
        await world.until_running(4)
        await world.suspend()
        await world.until(lambda pods: pods == [])
        await seats.set_capacity(node, 3)
        await world.suspend(suspended=False)
        await world.until_held(3)
        await world.until_condition(names.REASON_WAITING, "3/4 pods started")
        await seats.set_capacity(node, 4)
        await world.until_running(4)
        verdict = await world.until_verdict(lambda verdict: verdict.generation.epoch == 1)
        assert verdict.generation.attempt == 0
        await world.check_order(4)
