"""Roll-backs by the whole controller: Jobs that any failure would end, pods that cannot come back, a group deleted."""

import pytest

from jobset_gate import names
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.evictions import (
    POLICIES,
    Json,
    add_finalizers,
    all_held,
    indexes,
    remove_finalizers,
    uids,
    unharmed_owner,
)
from tests.flow.podgroups.groups import OffsetClock, touch_group

PROBE = Groups(capacity_check=CapacityCheck.PROBE)


def job(pods: int, policy: str) -> Json:
    more: Json = {} if POLICIES[policy] is None else {"podFailurePolicy": POLICIES[policy]}
    return manifests.job("work", "ring", pods, **more)


async def until_rolled_back(stage: GroupEnvironment, times: int) -> None:
    await stage.until_group(
        "ring",
        lambda it: f'"rolled_back":{times}' in it["metadata"].get("annotations", {}).get(names.POD_GROUP_RECORD, ""),
    )


def two_run(pods: list[Json]) -> bool:
    """And all three have been let through."""
    return sum(map(manifests.runs, pods)) == 2 and len(pods) == 3 and not any(map(gated, pods))


@pytest.mark.parametrize("policy", ["no policy", "fails on any code"])
async def test_a_job_is_tried_until_there_is_room_and_nothing_is_counted_against_it(
    make_stage: MakeGroupEnvironment, policy: str
) -> None:
    """Twice taken back, with pods that had begun, and then it runs."""
    ahead = OffsetClock()
    async with make_stage(nodes={"n": "2"}, settings=PROBE, kubelets=True, controller=False) as stage:
        stage.start_controller(clock=ahead)
        await stage.make_group("ring", 3, wait=60)
        await stage.apply(job(3, policy))
        for times in (1, 2):
            old = uids(await stage.until(two_run))
            await add_finalizers(stage)
            ahead.forward(61)
            await touch_group(stage, "ring")
            await until_rolled_back(stage, times)
            held = await stage.until(all_held(3, but=old))
            assert indexes(held) == ["0", "1", "2"]
            await unharmed_owner(stage, "work")
            await remove_finalizers(stage)
            ahead.forward(60)
            await touch_group(stage, "ring")
        await stage.add_node("m", "1")
        await stage.until(lambda pods: sum(map(manifests.runs, pods)) == 3)
        await unharmed_owner(stage, "work")
