"""The pods of Jobs taken back under the real Job controller and scheduler: no Job fails, none counts a failure (G4)."""

import pytest

from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.evictions import (
    POLICIES,
    ManualEviction,
    add_finalizers,
    all_held,
    indexes,
    job,
    living,
    placed,
    remove_finalizers,
    uids,
    unharmed_owner,
)


async def halfway(stage: GroupEnvironment, rolling: ManualEviction, policy: str, pods: int = 4) -> list[str]:
    """A Job whose gang is open: one pod has no place, one is bound and has not begun, the others run. Their UIDs."""
    assert stage.kubelets is not None
    stage.kubelets.inject_fault(PodFault(PodMatch(name="work-1-*"), slow_start=3600))
    await stage.apply(job("work", pods, POLICIES[policy]))
    held = await stage.until(all_held(pods))
    await rolling.open(one for one in held if not one["metadata"]["name"].startswith("work-3-"))
    await stage.until_bound(pods - 1)  # so that it is always the last one that has no place
    await rolling.open(one for one in held if one["metadata"]["name"].startswith("work-3-"))
    await stage.until(placed(pods - 2, pods - 1, pods))
    await add_finalizers(stage)
    return uids(held)


@pytest.mark.parametrize("policy", POLICIES)
async def test_a_job_that_any_failure_would_end_gets_all_its_pods_back(
    make_stage: MakeGroupEnvironment, policy: str
) -> None:
    async with make_stage(kubelets=True, nodes={"n": "3"}, controller=False) as stage:
        rolling = ManualEviction(stage)
        old = await halfway(stage, rolling, policy)
        rolled = await rolling.roll_back()
        assert rolled.blocked == ()
        assert not any(one["metadata"]["uid"] in old for one in living(stage.pods.all()))
        await rolling.resume()
        new = await stage.until(all_held(4, but=old))
        assert indexes(new) == ["0", "1", "2", "3"]
        await unharmed_owner(stage, "work")
        await remove_finalizers(stage)
