"""Roll-backs by the whole controller: Jobs that any failure would end, pods that cannot come back, a group deleted."""

from dataclasses import replace

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBS, POD_GROUPS
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import QUICK, GroupEnvironment
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
from tests.flow.podgroups.test_deadlines import Ahead

PROBE = Groups(capacity_check=CapacityCheck.PROBE)


def job(pods: int, policy: str) -> Json:
    more: Json = {} if POLICIES[policy] is None else {"podFailurePolicy": POLICIES[policy]}
    return manifests.job("work", "ring", pods, **more)


async def until_rolled_back(stage: GroupEnvironment, times: int) -> None:
    await stage.until_group(
        "ring",
        lambda it: f'"rolled_back":{times}' in it["metadata"].get("annotations", {}).get(names.POD_GROUP_RECORD, ""),
    )


async def stir(stage: GroupEnvironment, ahead: Ahead) -> None:
    """Something changes on the group, so that it is looked at, by the clock as it is now."""
    body = {"metadata": {"annotations": {"stirred": str(int(ahead.by))}}}
    await stage.client.patch(POD_GROUPS[names.PLUGINS_GROUP], "ring", stage.namespace, body=body, patch=PatchType.MERGE)


def two_run(pods: list[Json]) -> bool:
    """And all three have been let through."""
    return sum(map(manifests.runs, pods)) == 2 and len(pods) == 3 and not any(map(gated, pods))


@pytest.mark.parametrize("policy", ["no policy", "fails on any code"])
async def test_a_job_is_tried_until_there_is_room_and_nothing_is_counted_against_it(
    make_stage: MakeGroupEnvironment, policy: str
) -> None:
    """Twice taken back, with pods that had begun, and then it runs."""
    ahead = Ahead()
    async with make_stage(nodes={"n": "2"}, settings=PROBE, kubelets=True, controller=False) as stage:
        stage.start_controller(clock=ahead)
        await stage.make_group("ring", 3, wait=60)
        await stage.apply(job(3, policy))
        for times in (1, 2):
            old = uids(await stage.until(two_run))
            await add_finalizers(stage)
            ahead.by += 61.0
            await stir(stage, ahead)
            await until_rolled_back(stage, times)
            held = await stage.until(all_held(3, but=old))
            assert indexes(held) == ["0", "1", "2"]
            await unharmed_owner(stage, "work")
            await remove_finalizers(stage)
            ahead.by += 60.0
            await stir(stage, ahead)
        await stage.add_node("m", "1")
        await stage.until(lambda pods: sum(map(manifests.runs, pods)) == 3)
        await unharmed_owner(stage, "work")


async def test_a_job_goes_on_though_its_group_is_deleted_while_it_is_taken_back(
    make_stage: MakeGroupEnvironment,
) -> None:
    """The record goes with the PodGroup; what we have suspended must not stay so."""
    slow = replace(QUICK, stop_seconds=5.0)
    async with make_stage(nodes={"n": "1"}, settings=PROBE, kubelets=True, behaviour=slow) as stage:
        await stage.make_group("ring", 2, wait=1)
        await stage.apply(manifests.job("work", "ring", 2, template={"terminationGracePeriodSeconds": 5}))
        await stage.until_object(JOBS, "work", lambda one: one["spec"].get("suspend") is True)
        await stage.client.delete(POD_GROUPS[names.PLUGINS_GROUP], "ring", stage.namespace)
        await stage.until_object(JOBS, "work", lambda one: not one["spec"].get("suspend"))
        await stage.until(all_held(2))
        await unharmed_owner(stage, "work")
