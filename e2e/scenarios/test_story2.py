"""KEP-498, story 2, on real nodes: the workers are a gang, the auxiliary pod starts when it likes."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


def auxiliary(pod: predicates.Json) -> bool:
    return bool(pod["metadata"]["labels"][names.JS_REPLICATED_JOB] == "auxiliary")


async def test_the_auxiliary_pod_waits_for_nobody(world: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(node, 3)
        workers = gangs.workers(world.image, jobs=2, pods=2, resources=seats.request)
        aside = gangs.workers(world.image, name="auxiliary", jobs=1, pods=1)
        await world.apply(gangs.gang(workers, aside, targets=["workers"]))
        pods = await world.until(lambda pods: sum(map(predicates.held, pods)) == 3 and any(map(predicates.runs, pods)))
        (running,) = [pod for pod in pods if predicates.runs(pod)]
        assert auxiliary(running)
        assert not predicates.init_status(running, names.BARRIER_CONTAINER)
        await world.until_condition(names.REASON_WAITING, "3/4 pods started")
        await seats.set_capacity(node, 4)
        await world.until_running(5)
        await world.until_condition(names.REASON_STARTED)
