"""GangGroups: several gangs that start together or not at all, and lists that not all of them carry."""

import json
from typing import Any

from jobset_gate import names
from jobset_gate.kube.resources import POD_GROUPS, PODS
from jobset_gate.podgroups.model import Format
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import bound_count, members, until_reason

GROUPS = Format.KOORDINATOR_POD_GROUP
Json = dict[str, Any]


async def say(stage: GroupEnvironment, gang: str, minimum: int, *gangs: str) -> None:
    """The PodGroup of a gang whose GangGroup is that list of `namespace/name`."""
    listed = {names.KOORDINATOR_GANGS: json.dumps(gangs)} if gangs else {}
    made = manifests.pod_group(gang, minimum, GROUPS, annotations=listed)
    await stage.client.create(POD_GROUPS[names.SIGS_GROUP], made, stage.namespace)


async def join(stage: GroupEnvironment, gang: str, count: int, *, first: int = 0) -> None:
    """So many of its pods."""
    for one in members(gang, count, GROUPS, first=first):
        await stage.client.create(PODS, stage.here(one), stage.namespace)


async def until_reported(stage: GroupEnvironment, gang: str, reason: str, text: str = "") -> None:
    await until_reason(stage, gang, reason, text, GROUPS)


async def until_placed(stage: GroupEnvironment, **gangs: int) -> list[Json]:
    """Until so many pods of each gang have a node."""
    return await stage.until(lambda pods: all(bound_count(pods, gang, GROUPS) == many for gang, many in gangs.items()))


async def test_all_gangs_open_in_one_decision_once_each_has_gathered(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "4"}) as stage:
        both = [f"{stage.namespace}/ps", f"{stage.namespace}/worker"]
        await say(stage, "ps", 1, *both)
        await join(stage, "ps", 1)
        await until_reported(stage, "ps", names.REASON_WAITING_FOR_GANG_GROUP, "worker: not there yet")
        await say(stage, "worker", 3, *both)
        await join(stage, "worker", 2)
        await until_reported(stage, "worker", names.REASON_GATHERING, "2/3")
        await until_reported(stage, "ps", names.REASON_WAITING_FOR_GANG_GROUP, "worker")
        assert all(map(gated, stage.pods.all()))
        await join(stage, "worker", 1, first=2)
        await until_placed(stage, ps=1, worker=3)
        found = await stage.record("ps", GROUPS)
        assert found is not None
        assert [(key.name, generation) for key, generation in found.gangs] == [("ps", 1), ("worker", 1)]
