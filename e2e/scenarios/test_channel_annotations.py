"""The annotation patches alone, before the kubelet's next sync of the ConfigMap."""

import pytest

from e2e import gangs
from e2e.controllers import NO_STREAM, InstalledControllers
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone
BEFORE_A_SYNC = 45.0
"""Seconds: a pod that has just started its barrier is looked at again after 60 at the earliest."""


async def test_patched_pods_go_at_once(scenario: Scenario, nodes: Nodes, controllers: InstalledControllers) -> None:
    node = (await nodes.workers())[0]
    async with controllers.running_with(NO_STREAM), nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3)
        await scenario.apply(
            gangs.gang(gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request), timeout=300)
        )
        await scenario.until_held(3)
        await extended.set_capacity(node, 4)
        await scenario.until_verdict()
        pods = await scenario.until_running(4, BEFORE_A_SYNC)
        verdict = (await scenario.gate() or {})["data"][names.KEY_VERDICT]
        assert [pod["metadata"]["annotations"][names.VERDICT] for pod in pods] == [verdict] * 4
        took = await scenario.check_order(4)
        print(f"from the last barrier to the last main container, by annotation patches: {took:.1f}s")
