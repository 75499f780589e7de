"""KEP-498, story 1, on real nodes: three Jobs of four pods, and the last node has its extended resource late."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


async def test_nobody_runs_before_the_last_pod_has_its_node(scenario: Scenario, nodes: Nodes) -> None:
    early, late = (await nodes.workers())[:2]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(early, 8)
        workers = gangs.workers(scenario.image, jobs=3, pods=4, resources=extended.request)
        await scenario.apply(gangs.gang(workers, timeout=300))
        pods = await scenario.until_held(8)
        await scenario.until_condition(names.REASON_WAITING, "8/12 pods started; missing: 4 pods: Unscheduled")
        assert not any(map(predicates.has_run, pods))
        await extended.set_capacity(late, 3)
        pods = await scenario.until_held(11)
        await scenario.until_condition(names.REASON_WAITING, "11/12 pods started; missing: 1 pod: Unscheduled")
        assert not any(map(predicates.has_run, pods))
        assert await scenario.verdict() is None
        await extended.set_capacity(late, 4)
        await scenario.until_running(12)
        await scenario.until_condition(names.REASON_STARTED)
        await scenario.check_order(12)
        assert [reason for reason, _ in await scenario.events()] == [names.REASON_STARTED]
