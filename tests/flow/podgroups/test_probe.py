"""Probe: the first gang in order is opened although nothing proves its room, one at a time; and what becomes of it."""

from jobset_gate import names
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.record import AdmissionMode
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import of_group
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import all_held, create_group, until_reason

PROBE = Groups(capacity_check=CapacityCheck.PROBE)


async def until_reported_unschedulable(stage: GroupEnvironment, name: str) -> None:
    """Until the scheduler has looked at a pod of the gang in vain, as an autoscaler waits for."""

    def reported(one: manifests.Json) -> bool:
        conditions = one["status"].get("conditions", ())
        return any(it["type"] == "PodScheduled" and it.get("reason") == "Unschedulable" for it in conditions)

    await stage.until(lambda pods: any(map(reported, of_group(pods, name))))


async def test_the_first_in_order_shows_its_pods_to_the_autoscaler_one_gang_at_a_time(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "1"}, settings=PROBE) as stage:
        await create_group(stage, "first", 3)
        await until_reported_unschedulable(stage, "first")
        await create_group(stage, "second", 3)
        await until_reason(stage, "second", names.REASON_BEHIND_OTHER, f"{stage.namespace}/first")
        assert all_held(stage.pods.all(), "second")
        found = await stage.record("first")
        assert found is not None
        assert found.how is AdmissionMode.PROBE
        await stage.add_node("m", "2")
        await stage.until_bound(3, "first")
        await until_reported_unschedulable(stage, "second")
        await stage.add_node("o", "3")
        await stage.until_bound(3, "second")
