"""KEP-498, story 2, on real nodes: the workers are a gang, the auxiliary pod starts when it likes."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


def auxiliary(pod: predicates.Json) -> bool:
    return bool(pod["metadata"]["labels"][names.JS_REPLICATED_JOB] == "auxiliary")


async def test_the_auxiliary_pod_waits_for_nobody(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3)
        workers = gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request)
        aside = gangs.workers(scenario.image, name="auxiliary", jobs=1, pods=1)
        await scenario.apply(gangs.gang(workers, aside, targets=["workers"]))
        pods = await scenario.until(
            lambda pods: sum(map(predicates.held, pods)) == 3 and any(map(predicates.runs, pods))
        )
        (running,) = [pod for pod in pods if predicates.runs(pod)]
        assert auxiliary(running)
        assert not predicates.init_status(running, names.BARRIER_CONTAINER)
        await scenario.until_condition(names.REASON_WAITING, "3/4 pods started")
        await extended.set_capacity(node, 4)
        await scenario.until_running(5)
        await scenario.until_condition(names.REASON_STARTED)
