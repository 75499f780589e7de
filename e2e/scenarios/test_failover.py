"""The leader is killed while a gang waits on its stream: the barriers find the successor, which releases them."""

import pytest

from e2e import gangs, predicates
from e2e.controllers import NO_PATCHES, InstalledControllers
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone
BEFORE_A_SYNC = 45.0
"""Seconds: a pod that has just started its barrier is looked at again after 60 at the earliest."""


async def test_open_streams_move_to_the_new_leader(
    scenario: Scenario, nodes: Nodes, controllers: InstalledControllers
) -> None:
    node = (await nodes.workers())[0]
    async with controllers.running_with(NO_PATCHES), nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3)
        await scenario.apply(
            gangs.gang(gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request), timeout=300)
        )
        await scenario.until_held(3)
        leader = await controllers.until_led()
        (doomed,) = [pod for pod in await controllers.pods() if predicates.name_of(pod) == leader]
        await controllers.remove(doomed)
        await controllers.until_led(but=leader)
        await extended.set_capacity(node, 4)
        await scenario.until_verdict()
        pods = await scenario.until_running(4, BEFORE_A_SYNC)
        assert not any(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)
        await scenario.check_order(4)
