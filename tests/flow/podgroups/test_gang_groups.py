"""GangGroups: several gangs that start together or not at all, and lists that not all of them carry."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.fake.view import ObjectView
from jobset_gate.kube.resources import POD_GROUPS, PODS
from jobset_gate.podgroups.model import Format
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment
from tests.flow.podgroups.groups import all_held, bound_count, members, until_reason
from tests.plane.planes import Real, fresh_name

GROUPS, NOTES = Format.KOORDINATOR_POD_GROUP, Format.KOORDINATOR_ANNOTATIONS
Json = dict[str, Any]


async def say(stage: GroupEnvironment, gang: str, minimum: int, *gangs: str, namespace: str = "") -> None:
    """The PodGroup of a gang whose GangGroup is that list of `namespace/name`."""
    listed = {names.KOORDINATOR_GANGS: json.dumps(gangs)} if gangs else {}
    made = manifests.pod_group(gang, minimum, GROUPS, annotations=listed)
    await stage.client.create(POD_GROUPS[names.SIGS_GROUP], made, namespace or stage.namespace)


async def join(stage: GroupEnvironment, gang: str, count: int, *, first: int = 0, namespace: str = "") -> None:
    """So many of its pods."""
    for one in members(gang, count, GROUPS, first=first):
        await stage.client.create(PODS, stage.here(one), namespace or stage.namespace)


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


async def test_a_one_sided_list_holds_up_its_maker_alone(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "8"}) as stage:
        both = [f"{stage.namespace}/claimed", f"{stage.namespace}/claims"]
        await say(stage, "claimed", 2)
        await say(stage, "claims", 2, *both)
        for name in ("claims", "claimed"):
            await join(stage, name, 2)
        await until_placed(stage, claimed=2)
        wrong = f"{stage.namespace}/claimed has no GangGroup"
        await until_reported(stage, "claims", names.REASON_INVALID_GANG_GROUP, wrong)
        await stage.until_event("claims", names.REASON_INVALID_GANG_GROUP, wrong)
        await say(stage, "other", 2)
        await join(stage, "other", 2)
        pods = await until_placed(stage, other=2)
        assert all_held(pods, "claims", GROUPS)


@pytest.fixture
async def another(plane: Real) -> AsyncIterator[str]:
    """A second namespace."""
    name = fresh_name()
    await plane.make_namespace(name)
    yield name
    await plane.drop_namespace(name)


@asynccontextmanager
async def over_two(
    make_stage: MakeGroupEnvironment, another: str, settings: Groups
) -> AsyncIterator[tuple[GroupEnvironment, ObjectView]]:
    """A stage whose webhook and controller are for two namespaces, with the pods of the second."""
    async with make_stage(nodes={"n": "4"}, settings=settings, namespaces=(another,), controller=False) as stage:
        stage.start_controller(watch_namespace=None)
        async with ObjectView(stage.client, PODS, another) as there:
            yield stage, there


async def test_where_no_setting_allows_it_such_a_list_is_refused_and_nobody_else_is(
    make_stage: MakeGroupEnvironment, another: str
) -> None:
    async with over_two(make_stage, another, Groups()) as (stage, there):
        both = [f"{stage.namespace}/here", f"{another}/there"]
        await say(stage, "here", 1, *both)
        await say(stage, "there", 1, *both, namespace=another)
        await say(stage, "alone", 1)
        await join(stage, "here", 1)
        await join(stage, "there", 1, namespace=another)
        await join(stage, "alone", 1)
        await until_reported(
            stage, "here", names.REASON_INVALID_GANG_GROUP, f"must stay in namespace {stage.namespace}"
        )
        pods = await until_placed(stage, alone=1)
        assert all_held(pods, "here", GROUPS)
        assert all(map(gated, there.all()))
