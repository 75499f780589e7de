"""While many groups are placed at once the API server is left to the scheduler; nothing is lost by that (G5)."""

from __future__ import annotations

import pytest

from controllers.groups.rush import LONGEST, MANY, Rush
from jobset_gate import names
from jobset_gate.groups.candidates import Check
from jobset_gate.groups.model import Key
from jobset_gate.groups.record import Stage
from jobset_gate.kube.errors import ServerError
from jobset_gate.kube.resources import EVENTS, PODS, Resource
from jobset_gate.settings import Groups
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.crowds import CROWD, bind, gather, satisfied
from tests.controllers.groups.small import PLUGINS, SmallCluster, keeping, settled
from tests.jobset_gate.groups.builders import Json
from tests.jobset_gate.groups.objects import key

OFF = Groups(capacity_check=Check.OFF)


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


# --- The rush itself -------------------------------------------------------------------------------------------------


def rush(clock: list[float], *groups: str) -> tuple[Rush, list[Key]]:
    woken: list[Key] = []
    made = Rush(lambda: clock[0], woken.append)
    for name in groups:
        made.placing(key(name), clock[0])
    return made, woken


def test_a_few_groups_are_no_rush() -> None:
    made, _ = rush([0.0], *CROWD[: MANY - 1])
    assert made.wait(key("x")) == 0


def test_it_begins_with_many_and_ends_with_the_last_and_who_waited_is_woken() -> None:
    made, woken = rush([0.0], *CROWD)
    assert made.wait(key("x")) == LONGEST
    for name in CROWD[1:]:
        made.placed(key(name))
    assert made.wait(key("x")) > 0, "one is left"
    made.placed(key(CROWD[0]))
    assert woken == [key("x")]
    assert made.wait(key("x")) == 0


def test_nothing_is_put_off_for_longer_than_that_however_long_it_lasts() -> None:
    clock = [0.0]
    made, _ = rush(clock, *CROWD)
    assert made.wait(key("x")) == LONGEST
    clock[0] = LONGEST - 1
    for name in CROWD:
        made.placing(key(f"more-{name}"), clock[0])
    assert made.wait(key("x")) == 1
    clock[0] = LONGEST
    assert made.wait(key("x")) == 0
    assert made.wait(key("x")) == 0
    assert made.wait(key("y")) == LONGEST


def test_groups_that_are_not_placed_in_that_time_are_none_of_it_any_more() -> None:
    clock = [0.0]
    made, woken = rush(clock, *CROWD)
    made.wait(key("x"))
    clock[0] = LONGEST
    made.placing(key(CROWD[0]), 0.0)
    assert made.wait(key("y")) == 0
    assert woken == [key("x")]


# --- In the controller -----------------------------------------------------------------------------------------------


async def test_in_a_rush_nothing_is_written_but_decisions_gates_and_one_list_of_those_whose_minimum_is_bound(
    cluster: SmallCluster,
) -> None:
    async with keeping(cluster, OFF):
        gather(cluster, *CROWD)
        await settled(3)
        before = len(cluster.writes)
        assert cluster.wrote("patch", PLUGINS, names.GANG_RECORD) == len(CROWD)
        assert cluster.wrote("patch", PODS) == 2 * len(CROWD)
        for name in CROWD[:-1]:
            bind(cluster, name)
            await settled(1)
        noted = [it for it in cluster.writes[before:] if it[2] == names.GANG_LEDGER]
        assert cluster.writes[before:] == noted
        assert satisfied(cluster) == []
        last = cluster.clock()
        bind(cluster, CROWD[-1])
        await settled(5)
        assert satisfied(cluster) == CROWD
        times = [it.satisfied for name in CROWD if (it := cluster.record(name)) is not None and it.satisfied]
        assert times == sorted(times), "when they were, not when it was written"
        assert times[0] < last - MANY + 1
        await settled(30)
        told = [it["involvedObject"]["name"] for it in cluster.all(EVENTS) if it["reason"] == names.REASON_SATISFIED]
        assert sorted(told) == sorted(CROWD)


async def test_that_the_minimum_was_bound_is_written_at_once_also_in_a_rush_if_a_pod_waits_for_it(
    cluster: SmallCluster,
) -> None:
    async with keeping(cluster, OFF):
        gather(cluster, *CROWD)
        await settled(3)
        bind(cluster, "g0")
        cluster.gather("g0", "late")
        await settled(0.3)
        assert satisfied(cluster, "g0") == ["g0"]
        await settled(0.3)
        assert "late" in cluster.open()


async def test_a_group_whose_minimum_was_bound_is_satisfied_whatever_comes_before_that_is_written(
    cluster: SmallCluster,
) -> None:
    refused: list[str] = []
    over: list[bool] = []

    def fate(verb: str, kind: Resource, name: str, body: Json) -> ServerError | None:
        if (name == names.GANG_LEDGER or '"satisfied":1' in str(body)) and not over:
            refused.append(name)
            return ServerError(500, "InternalError", "not now")
        return None

    async with keeping(cluster, OFF):
        gather(cluster, *CROWD)
        await settled(3)
        cluster.fate = fate
        bind(cluster, "g0")
        await settled(0.4)
        assert refused[:2] == [names.GANG_LEDGER, "g0"]
        assert satisfied(cluster, "g0") == []
        cluster.remove(PODS, "g0-1")
        over.append(True)
        await settled(10)
        assert satisfied(cluster, "g0") == ["g0"]
        await settled(100)
        found = cluster.record("g0")
        assert found is not None
        assert found.stage is Stage.OPEN
        assert "g0-0" in cluster.open()


async def test_who_was_satisfied_is_so_for_a_successor_too_whatever_is_lost_meanwhile(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        gather(cluster, *CROWD)
        await settled(3)
        bind(cluster, "g0")
        await settled(2)
    cluster.remove(PODS, "g0-1")
    async with keeping(cluster, OFF):
        await settled(120)
        found = cluster.record("g0")
        assert found is not None
        assert found.stage is Stage.OPEN
        assert "g0-0" in cluster.open()


async def test_a_successor_finds_out_by_itself_who_is_satisfied(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        gather(cluster, *CROWD)
        await settled(3)
    bind(cluster, *CROWD[:-1])
    async with keeping(cluster, OFF):
        await settled(2)
        assert satisfied(cluster) == CROWD[:-1]


async def test_what_is_to_be_said_comes_in_time_also_if_the_rush_goes_on(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        gather(cluster, *CROWD)
        await settled(3)
        bind(cluster, "g0")
        await settled(LONGEST + 2)
        told = [it["involvedObject"]["name"] for it in cluster.all(EVENTS) if it["reason"] == names.REASON_SATISFIED]
        assert told == ["g0"]


async def test_that_a_minimum_was_bound_is_forgotten_with_its_pod_group(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        gather(cluster, *CROWD)
        await settled(3)
        bind(cluster, "g0")
        await settled(1)
        for kind, name in ((PLUGINS, "g0"), (PODS, "g0-0"), (PODS, "g0-1")):
            cluster.remove(kind, name)
        cluster.gather("g0", "new-0", "new-1", minimum=2)
        await settled(1)
        cluster.bind("new-0")
        await settled(2)
        assert "new-1" in cluster.open()
        assert satisfied(cluster, "g0") == []
