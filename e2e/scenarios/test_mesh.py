"""A mesh puts its sidecar into the pods themselves, unseen by a webhook for JobSets: the gang starts together."""

import pytest

from e2e import gangs, logs, meshes, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


@pytest.mark.parametrize("place", list(meshes.SidecarPosition))
async def test_the_gang_starts_with_a_sidecar_that_came_later(
    scenario: Scenario, nodes: Nodes, place: meshes.SidecarPosition
) -> None:
    if not await meshes.known(scenario):
        pytest.skip("API servers of this cluster do not change pods by policies")
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended, meshes.injecting(scenario, place):
        await extended.set_capacity(node, 1)
        workers = gangs.workers(scenario.image, jobs=1, pods=2, resources=extended.request, work=gangs.SHORT_WORK)
        await scenario.apply(gangs.gang(workers, timeout=300))
        (held,) = [pod for pod in await scenario.until_held(1) if predicates.held(pod)]
        order = [names.BARRIER_CONTAINER, meshes.PROXY]
        found = [one["name"] for one in held["spec"]["initContainers"]]
        assert found == (order if place is meshes.SidecarPosition.LAST else order[::-1])
        await extended.set_capacity(node, 2)
        await scenario.until_jobset(predicates.completed)
        await scenario.check_order(2)
        proxies = logs.first_lines(await scenario.logs(), meshes.PROXY)
        assert len(proxies) == 2
