"""The ConfigMap alone: no stream, no patches, and the controllers are killed as soon as the decision stands."""

import pytest

from e2e import gangs
from e2e.controllers import NO_PATCHES, NO_STREAM, InstalledControllers
from e2e.scenario import Scenario
from jobset_gate import names

pytestmark = pytest.mark.alone
TWO_SYNC_PERIODS = 200.0
"""A kubelet looks at a pod's volumes every 60 to 90 s by itself."""


async def test_the_decision_outlives_its_makers(world: Scenario, controllers: InstalledControllers) -> None:
    async with controllers.running_with(NO_PATCHES, NO_STREAM):
        await world.apply(gangs.gang(gangs.workers(world.image, jobs=2, pods=2), timeout=300))
        await world.until_verdict()
        async with controllers.gone():
            decided = await world.gate()
            pods = await world.until_running(4, TWO_SYNC_PERIODS)
            assert not any(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)
            assert await controllers.pods() == []
            took = await world.check_order(4)
            print(f"from the last barrier to the last main container, by the ConfigMap alone: {took:.1f}s")
        # Whoever comes next tells what has happened, and decides nothing again.
        await world.until_condition(names.REASON_STARTED)
        now = await world.gate()
        assert decided is not None
        assert now is not None
        assert now["data"] == decided["data"]
