"""Gangs as people use them, on the real API server and the real scheduler: quorums, neighbours, and who never comes."""

from jobset_gate import names
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.groups import (
    create_group,
)


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
