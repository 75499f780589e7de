"""A pod that was counted is deleted before the release: the gang waits for its replacement, too."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

EXIT_SIGTERM = 143


async def test_the_gang_waits_for_the_replacement(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3)
        workers = gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request, backoff_limit=6)
        await scenario.apply(gangs.gang(workers))
        held = [pod for pod in await scenario.until_held(3) if predicates.held(pod)]
        await scenario.until_condition(names.REASON_WAITING, "3/4 pods started")
        await extended.set_capacity(node, 2)
        lost = predicates.name_of(held[0])
        await scenario.delete_pod(lost)

        await scenario.until(lambda _: lost in scenario.ends)
        assert scenario.ends[lost]["exitCode"] == EXIT_SIGTERM
        await scenario.until_condition(names.REASON_WAITING, "2/4 pods started")
        # The two that were not lost still wait, and so does a new pod.
        await extended.set_capacity(node, 3)
        await scenario.until_held(3)
        await extended.set_capacity(node, 4)
        await scenario.until_running(4)
        await scenario.check_order(4)
