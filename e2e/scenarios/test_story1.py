"""KEP-498, story 1, on real nodes: three Jobs of four pods, and the last node has its seats late."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


async def test_nobody_runs_before_the_last_pod_has_its_node(world: Scenario, nodes: Nodes) -> None:
    early, late = (await nodes.workers())[:2]
    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(early, 8)
        workers = gangs.workers(world.image, jobs=3, pods=4, resources=seats.request)
        await world.apply(gangs.gang(workers, timeout=300))
        pods = await world.until_held(8)
        await world.until_condition(names.REASON_WAITING, "8/12 pods started; missing: 4 pods: Unscheduled")
        assert not any(map(predicates.has_run, pods))
        await seats.set_capacity(late, 3)
        pods = await world.until_held(11)
        await world.until_condition(names.REASON_WAITING, "11/12 pods started; missing: 1 pod: Unscheduled")
        assert not any(map(predicates.has_run, pods))
        assert await world.verdict() is None
        await seats.set_capacity(late, 4)
        await world.until_running(12)
        await world.until_condition(names.REASON_STARTED)
        await world.check_order(12)
        assert [reason for reason, _ in await world.events()] == [names.REASON_STARTED]
