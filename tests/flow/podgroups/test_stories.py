"""Gangs as people use them, on the real API server and the real scheduler: quorums, neighbours, and who never comes."""

from jobset_gate import names
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.groups import (
    OffsetClock,
    all_held,
    bound_count,
    create_group,
    delete_group,
    members,
    until_reason,
    until_satisfied,
)


async def test_a_quorum_of_5_out_of_8_starts_and_the_rest_comes_when_it_can(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "6"}) as stage:
        await stage.make_group("ring", 5)
        await stage.create(*members("ring", 4))
        await until_reason(stage, "ring", names.REASON_GATHERING, "4/5")
        assert all_held(stage.pods.all(), "ring")
        await stage.create(*members("ring", 4, first=4))
        await stage.until_bound(6)
        await until_satisfied(stage, "ring")
        await stage.add_node("m", "2")
        pods = await stage.until_bound(8)
        assert {manifests.opened(one) for one in pods} == {1}
        found = await stage.record("ring")
        assert found is not None
        assert (found.stage, found.minimum, found.rolled_back) == (AdmissionState.OPEN, 5, 0)


async def test_a_small_gang_fits_beside_a_large_one_and_starves_nobody(make_stage: MakeGroupEnvironment) -> None:
    """It passes the one that waits for more room, until that one has waited long enough."""
    clock = OffsetClock()
    async with make_stage(nodes={"n": "5", "m": "5"}, controller=False) as stage:
        stage.start_controller(clock=clock)
        await create_group(stage, "a", 6)
        await stage.until_bound(6, "a")
        await create_group(stage, "b", 6)
        await until_reason(stage, "b", names.REASON_WAITING_FOR_CAPACITY, "needs 6 cpu, 4 free")
        await create_group(stage, "small", 4)
        await stage.until_bound(4, "small")
        assert all_held(stage.pods.all(), "b")
        clock.forward(stage.settings.groups.starvation_seconds)
        await delete_group(stage, "small")
        await create_group(stage, "next", 4)
        await until_reason(stage, "next", names.REASON_BEHIND_OTHER, f"{stage.namespace}/b")
        assert all_held(stage.pods.all(), "next")
        await delete_group(stage, "a")
        await stage.until(lambda pods: bound_count(pods, "b") == 6 and bound_count(pods, "next") == 4)


async def test_annotations_win_over_the_pod_group_value_by_value(make_stage: MakeGroupEnvironment) -> None:
    """Koordinator: the pods say 2 where the PodGroup says 4; what they do not say comes from it."""
    async with make_stage(nodes={"n": "8"}) as stage:
        await stage.make_group("ring", 4, Format.KOORDINATOR_POD_GROUP, wait=77)
        both = {names.KOORDINATOR_NAME: "ring", names.KOORDINATOR_MINIMUM: "2"}
        pods = [
            manifests.pod(name, "ring", Format.KOORDINATOR_POD_GROUP, annotations=both) for name in ("ring-0", "ring-1")
        ]
        await stage.create(*pods)
        await stage.until_bound(2)
        found = await stage.record("ring", Format.KOORDINATOR_ANNOTATIONS) or await stage.record(
            "ring", Format.KOORDINATOR_POD_GROUP
        )
        assert found is not None
        assert (found.minimum, float(found.wait)) == (2, 77.0)


async def test_without_a_check_a_gang_is_opened_at_its_quorum_whatever_the_room(
    make_stage: MakeGroupEnvironment,
) -> None:
    async with make_stage(nodes={"n": "1"}, settings=Groups(capacity_check=CapacityCheck.OFF)) as stage:
        await create_group(stage, "ring", 3)
        pods = await stage.until(lambda pods: len(pods) == 3 and not any(map(gated, pods)) and any(map(bound, pods)))
        assert sum(map(bound, pods)) == 1
