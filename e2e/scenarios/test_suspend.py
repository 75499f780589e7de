"""Suspended and resumed, as Kueue does it: Jobs and restart attempt stay the same, the old release is not valid."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


async def test_a_resumed_gang_is_held_again(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 4)
        workers = gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request)
        await scenario.apply(gangs.gang(workers, suspend=True))
        await scenario.until_jobset(lambda jobset: predicates.condition(jobset, "Suspended").get("status") == "True")
        assert scenario.pods.all() == []
        await scenario.suspend(suspended=False)
        await scenario.until_running(4)
        await scenario.suspend()
        await scenario.until(lambda pods: pods == [])
        await extended.set_capacity(node, 3)
        await scenario.suspend(suspended=False)
        await scenario.until_held(3)
        await scenario.until_condition(names.REASON_WAITING, "3/4 pods started")
        await extended.set_capacity(node, 4)
        await scenario.until_running(4)
        verdict = await scenario.until_verdict(lambda verdict: verdict.generation.epoch == 1)
        assert verdict.generation.attempt == 0
        await scenario.check_order(4)
