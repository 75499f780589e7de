"""A node loses the API server just before the release: its pods go by the stream, or when the network heals."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

import pytest

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone


@asynccontextmanager
async def half_held(
    scenario: Scenario, nodes: Nodes, *, stream: bool
) -> AsyncIterator[tuple[list[predicates.Json], str]]:
    """Two pods wait on the first node, which is cut off before the last of the others is bound. Gives the two and it.

    Without `stream` it is cut off from that, too.
    """
    here, there = (await nodes.workers())[:2]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(there, 1)
        await scenario.apply(gangs.on_two_nodes(scenario.image, here, extended.request))
        pods = await scenario.until_held(3)
        await scenario.until_condition(names.REASON_WAITING, "3/4 pods started")
        async with AsyncExitStack() as cuts:
            await cuts.enter_async_context(nodes.no_api_server(here))
            if not stream:
                await cuts.enter_async_context(nodes.no_stream(here))
            await extended.set_capacity(there, 2)
            yield [pod for pod in pods if pod["spec"].get("nodeName") == here], here
        await scenario.until_running(4)
        await scenario.check_order(4)
        await scenario.until_condition(names.REASON_STARTED)


async def test_the_stream_needs_no_api_server(scenario: Scenario, kind_nodes: Nodes) -> None:
    async with half_held(scenario, kind_nodes, stream=True) as (cut_off, node):
        for pod in cut_off:
            await kind_nodes.until_logged(node, pod, "main", gangs.PRINTS_START)
        # All that the API server knows is that they were waiting.
        known = {predicates.name_of(pod) for pod in scenario.pods.all() if predicates.held(pod)}
        assert {predicates.name_of(pod) for pod in cut_off} <= known


async def test_without_a_stream_they_go_when_the_network_heals(scenario: Scenario, kind_nodes: Nodes) -> None:
    async with half_held(scenario, kind_nodes, stream=False) as (cut_off, node):
        await scenario.until_running(2)
        for pod in cut_off:
            assert gangs.PRINTS_START not in await kind_nodes.container_log(node, pod, "main")
