"""The stream is cut for one node while its pods wait on it: they hear by annotation, the others by stream."""

import pytest

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone


async def test_each_channel_heals_the_other(world: Scenario, wires: Nodes) -> None:
    here, there = (await wires.workers())[:2]
    async with wires.extended_resource(world.namespace) as seats:
        await seats.set_capacity(there, 1)
        await world.apply(gangs.on_two_nodes(world.image, here, seats.request))
        await world.until_held(3)
        async with wires.no_stream(here):
            await seats.set_capacity(there, 2)
            pods = await world.until_running(4)
        told = {pod["metadata"]["labels"][names.JS_REPLICATED_JOB] for pod in pods if names.VERDICT in annotations(pod)}
        assert "near" in told
        await world.check_order(4)


def annotations(pod: predicates.Json) -> predicates.Json:
    return dict(pod["metadata"].get("annotations") or {})
