"""The webhook's pods are replaced, or die, while users make gangs: none is refused by a rollout, none goes unheld."""

from typing import Final

import pytest

from e2e import admission_load, gate
from e2e.release_admin import ReleaseAdmin, until_barriers_injected
from e2e.scenario import Scenario
from jobset_gate.kube.resources import PODS

pytestmark = pytest.mark.alone
GANGS: Final = 200


async def test_a_rollout_refuses_nobody(world: Scenario, operator: ReleaseAdmin) -> None:
    before = await webhooks(world)
    async with admission_load.admission_load(world) as tally:
        await operator.kubectl("rollout", "restart", f"deployment/{gate.WEBHOOK}")
        await operator.kubectl("rollout", "status", f"deployment/{gate.WEBHOOK}", "--timeout=100s")
        await tally.reaches(GANGS)
    print(f"while the webhook was rolled: {tally}")
    tally.check()
    assert len(before) == 2
    assert not before & await webhooks(world)


async def test_a_replica_that_dies_lets_no_gang_pass(world: Scenario, operator: ReleaseAdmin) -> None:
    """Those that it was asked for are refused, and made when they are tried again."""
    doomed = min(await webhooks(world))
    async with admission_load.admission_load(world) as tally:
        await tally.reaches(GANGS // 4)
        await world.client.delete(PODS, doomed, gate.NAMESPACE, grace_seconds=0)
        await until_barriers_injected(world)
        await operator.kubectl("rollout", "status", f"deployment/{gate.WEBHOOK}", "--timeout=100s")
        await tally.reaches(GANGS)
    print(f"while one of the webhook's pods died: {tally}")
    assert not tally.free, str(tally)
    assert len(tally.refused) < tally.held


async def webhooks(world: Scenario) -> set[str]:
    """The names of its pods that are not on their way out."""
    found = (await world.client.list(PODS, gate.NAMESPACE, label_selector=gate.WEBHOOKS))["items"]
    return {pod["metadata"]["name"] for pod in found if pod["metadata"].get("deletionTimestamp") is None}
