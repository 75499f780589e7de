"""A group is opened when it has gathered, whole, and its pods are bound: real API server, real scheduler."""

import pytest

from jobset_gate import names
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.decode import parse_opened
from jobset_gate.podgroups.record import AdmissionMode, AdmissionState
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.flow.podgroups.conftest import MakeGroupEnvironment

OFF = Groups(capacity_check=CapacityCheck.OFF)


def generations(pods: list[dict[str, object]]) -> set[int]:
    """Those in which the pods were opened."""
    return {parse_opened(it["metadata"]["annotations"].get(names.POD_GROUP_OPENED, ""))[0] for it in pods}  # type: ignore[index]


@pytest.mark.parametrize("check", [CapacityCheck.OFF, CapacityCheck.FIT])
async def test_a_group_is_opened_when_its_minimum_is_there(
    make_stage: MakeGroupEnvironment, check: CapacityCheck
) -> None:
    async with make_stage(nodes={"n": "4"}, settings=Groups(capacity_check=check)) as stage:
        await stage.make_group("ring", 3)
        await stage.create(manifests.pod("a", "ring"), manifests.pod("b", "ring"))
        await stage.until_group("ring", lambda it: "2/3" in str(it))
        assert await stage.record("ring") is None
        await stage.create(manifests.pod("c", "ring"))
        pods = await stage.until_bound(3)
        found = await stage.record("ring")
        assert found is not None
        wanted = AdmissionMode.OFF if check is CapacityCheck.OFF else AdmissionMode.FIT
        assert (found.generation, found.stage, found.how, found.minimum) == (1, AdmissionState.OPEN, wanted, 3)
        assert generations(pods) == {1}


async def test_later_members_pass_once_the_minimum_was_bound(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "8"}) as stage:
        await stage.make_group("ring", 2)
        await stage.create(manifests.pod("a", "ring"), manifests.pod("b", "ring"))
        await stage.until_bound(2)
        await stage.create(manifests.pod("late", "ring"))
        pods = await stage.until_bound(3)
        assert generations(pods) == {1}
        found = await stage.record("ring")
        assert found is not None
        assert found.satisfied is not None
