"""The webhook's pods are replaced, or die, while users make gangs: none is refused by a rollout, none goes unheld."""

from typing import Final

import pytest

from e2e import admission_load, gate
from e2e.release_admin import ReleaseAdmin, until_barriers_injected
from e2e.scenario import Scenario
from jobset_gate.kube.resources import PODS

pytestmark = pytest.mark.alone
GANGS: Final = 200


async def test_a_rollout_refuses_nobody(scenario: Scenario, release_admin: ReleaseAdmin) -> None:
    before = await webhooks(scenario)
    async with admission_load.admission_load(scenario) as tally:
        await release_admin.kubectl("rollout", "restart", f"deployment/{gate.WEBHOOK}")
        await release_admin.kubectl("rollout", "status", f"deployment/{gate.WEBHOOK}", "--timeout=100s")
        await tally.reaches(GANGS)
    print(f"while the webhook was rolled: {tally}")
    tally.check()
    assert len(before) == 2
    assert not before & await webhooks(scenario)


async def test_a_replica_that_dies_lets_no_gang_pass(scenario: Scenario, release_admin: ReleaseAdmin) -> None:
    """Creations that it handled are refused, and succeed when they are tried again."""
    doomed = min(await webhooks(scenario))
    async with admission_load.admission_load(scenario) as tally:
        await tally.reaches(GANGS // 4)
        await scenario.client.delete(PODS, doomed, gate.NAMESPACE, grace_seconds=0)
        await until_barriers_injected(scenario)
        await release_admin.kubectl("rollout", "status", f"deployment/{gate.WEBHOOK}", "--timeout=100s")
        await tally.reaches(GANGS)
    print(f"while one of the webhook's pods died: {tally}")
    assert not tally.free, str(tally)
    assert len(tally.refused) < tally.held


async def webhooks(scenario: Scenario) -> set[str]:
    """The names of its pods that are not on their way out."""
    found = (await scenario.client.list(PODS, gate.NAMESPACE, label_selector=gate.WEBHOOKS))["items"]
    return {pod["metadata"]["name"] for pod in found if pod["metadata"].get("deletionTimestamp") is None}
