"""The ConfigMap alone: no stream, no patches, and the controllers are killed as soon as the decision stands."""

import pytest

from e2e import gangs, predicates
from e2e.controllers import NO_PATCHES, NO_STREAM, InstalledControllers
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import PODS

pytestmark = pytest.mark.alone
SYNC = {"metadata": {"annotations": {"test.jobset-gate.dev/sync": "now"}}}
"""A kubelet syncs a pod's volumes when the pod changes; otherwise every 60 to 90 s, which is no rule of ours."""


async def test_the_decision_outlives_its_makers(scenario: Scenario, controllers: InstalledControllers) -> None:
    async with controllers.running_with(NO_PATCHES, NO_STREAM):
        await scenario.apply(gangs.gang(gangs.workers(scenario.image, jobs=2, pods=2), timeout=300))
        await scenario.until_verdict()
        async with controllers.gone():
            decided = await scenario.gate()
            for pod in scenario.pods.all():
                name = predicates.name_of(pod)
                await scenario.client.patch(PODS, name, scenario.namespace, body=SYNC, patch=PatchType.MERGE)
            pods = await scenario.until_running(4)
            assert not any(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)
            assert await controllers.pods() == []
            took = await scenario.check_order(4)
            print(f"from the last barrier to the last main container, by the ConfigMap alone: {took:.1f}s")
        # The next leader reports the decision, and takes no other.
        await scenario.until_condition(names.REASON_STARTED)
        now = await scenario.gate()
        assert decided is not None
        assert now is not None
        assert now["data"] == decided["data"]
