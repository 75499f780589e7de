"""The stream is cut for one node while its pods wait on it: they hear by annotation, the others by stream."""

import pytest

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone


async def test_each_channel_heals_the_other(scenario: Scenario, kind_nodes: Nodes) -> None:
    here, there = (await kind_nodes.workers())[:2]
    async with kind_nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(there, 1)
        await scenario.apply(gangs.on_two_nodes(scenario.image, here, extended.request))
        await scenario.until_held(3)
        async with kind_nodes.no_stream(here):
            await extended.set_capacity(there, 2)
            pods = await scenario.until_running(4)
        patched = {
            pod["metadata"]["labels"][names.JS_REPLICATED_JOB] for pod in pods if names.VERDICT in annotations(pod)
        }
        assert "near" in patched
        await scenario.check_order(4)


def annotations(pod: predicates.Json) -> predicates.Json:
    return dict(pod["metadata"].get("annotations") or {})
