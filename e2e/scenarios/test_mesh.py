"""A mesh puts its sidecar into the pods themselves, unseen by a webhook for JobSets: the gang starts together."""

import pytest

from e2e import gangs, logs, meshes, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


@pytest.mark.parametrize("place", list(meshes.SidecarPosition))
async def test_the_gang_starts_with_a_sidecar_that_came_later(
    world: Scenario, nodes: Nodes, place: meshes.SidecarPosition
) -> None:
    if not await meshes.known(world):
        pytest.skip("API servers of this cluster do not change pods by policies")
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(world.namespace) as seats, meshes.injecting(world, place):
        await seats.set_capacity(node, 1)
        workers = gangs.workers(world.image, jobs=1, pods=2, resources=seats.request, work=gangs.SHORT_WORK)
        await world.apply(gangs.gang(workers, timeout=300))
        (held,) = [pod for pod in await world.until_held(1) if predicates.held(pod)]
        order = [names.BARRIER_CONTAINER, meshes.PROXY]
        found = [one["name"] for one in held["spec"]["initContainers"]]
        assert found == (order if place is meshes.SidecarPosition.LAST else order[::-1])
        await seats.set_capacity(node, 2)
        await world.until_jobset(predicates.completed)
        await world.check_order(2)
        proxies = logs.first_lines(await world.logs(), meshes.PROXY)
        assert len(proxies) == 2
