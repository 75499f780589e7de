"""A gang that waits is deleted: every barrier exits on the signal, so no deletion takes the grace period of 30 s."""

from e2e import gangs
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate.kube.resources import JOBSETS

EXIT_SIGTERM = 143


async def test_waiting_pods_end_on_sigterm(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3)
        await scenario.apply(gangs.gang(gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request)))
        await scenario.until_held(3)
        await scenario.client.delete(JOBSETS, "gang", scenario.namespace, propagation="Foreground")
        await scenario.until(lambda pods: pods == [])
        # Killed after the grace period would be 137.
        assert [end["exitCode"] for end in scenario.ends.values()] == [EXIT_SIGTERM] * 3
