"""A node joins the cluster while the gang waits for it."""

import pytest

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone


async def test_the_gang_starts_when_the_last_node_has_joined(scenario: Scenario, kind_nodes: Nodes) -> None:
    here, late = (await kind_nodes.workers())[:2]
    async with kind_nodes.not_joined(late):
        near, far = (
            gangs.workers(
                scenario.image, name=name, jobs=1, pods=2, pod={"nodeSelector": {"kubernetes.io/hostname": node}}
            )
            for name, node in (("near", here), ("far", late))
        )
        await scenario.apply(gangs.gang(near, far, timeout=300))
        pods = await scenario.until_held(2)
        await scenario.until_condition(names.REASON_WAITING, "2/4 pods started; missing: 2 pods: Unscheduled")
        assert not any(map(predicates.has_run, pods))
    await scenario.until_running(4)
    await scenario.check_order(4)
