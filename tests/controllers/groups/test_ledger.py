"""What a rush puts off is noted for a successor, in one object, and nothing stays on it (G4)."""

from __future__ import annotations

import json

import pytest

from controllers.groups import ledger
from controllers.groups.rush import LONGEST
from jobset_gate import names
from jobset_gate.groups.candidates import Check
from jobset_gate.groups.record import How, Stage
from jobset_gate.kube.errors import Forbidden, KubeError, ServerError
from jobset_gate.kube.resources import CONFIGMAPS, PODS, Resource
from jobset_gate.settings import Groups
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.crowds import CROWD, bind, gather, satisfied
from tests.controllers.groups.small import PLUGINS, SmallCluster, add_node, keeping, settled
from tests.jobset_gate.groups.builders import Json

OFF = Groups(capacity_check=Check.OFF)
GATE = {"name": names.GANG_GATE}
ASKS = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}], "schedulingGates": [GATE]}
WAIT = 120


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


async def crowded(cluster: SmallCluster) -> None:
    """Many groups are being placed."""
    gather(cluster, *CROWD, terms={"scheduleTimeoutSeconds": WAIT}, spec=ASKS)
    await settled(3)


def leave(cluster: SmallCluster, text: str) -> None:
    """This is what a leader has left on it."""
    body: Json = {"metadata": {"name": names.GANG_LEDGER, "namespace": "system"}, "data": {names.KEY_LEDGER: text}}
    cluster.put(CONFIGMAPS, body)


def noted(cluster: SmallCluster) -> list[str] | None:
    """Groups on it; None: there is no such object."""
    found = [it for it in cluster.all(CONFIGMAPS, "system") if it["metadata"]["name"] == names.GANG_LEDGER]
    if not found:
        return None
    return sorted(key.rsplit("/", 1)[1] for key in json.loads(found[0]["data"][names.KEY_LEDGER]))


def writes(cluster: SmallCluster) -> list[str]:
    return [it[0] for it in cluster.writes if it[2] == names.GANG_LEDGER]


async def test_one_write_for_all_that_come_together_and_none_is_left_when_the_rush_is_over(
    cluster: SmallCluster,
) -> None:
    async with keeping(cluster, OFF) as keeper:
        await crowded(cluster)
        bind(cluster, *CROWD[:-1])
        await settled(2)
        assert noted(cluster) == CROWD[:-1]
        assert keeper.metric("opened_to_satisfied_seconds_count") == len(CROWD) - 1
        assert len(writes(cluster)) <= 2
        assert satisfied(cluster) == []
        bind(cluster, CROWD[-1])
        await settled(3)
        assert satisfied(cluster) == CROWD
        assert noted(cluster) is None
        assert keeper.metric("opened_to_satisfied_seconds_count") == len(CROWD)


async def test_a_few_groups_are_written_down_at_once(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        cluster.gather("g0", "g0-0", "g0-1", minimum=2)
        await settled(3)
        bind(cluster, "g0")
        await settled(0.3)
        assert satisfied(cluster, "g0") == ["g0"]
        assert writes(cluster) == []


async def test_a_successor_knows_when_it_was_and_takes_nobody_back(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        await crowded(cluster)
        bind(cluster, "g0", "g1")
        at = cluster.clock()
        await settled(2)
        assert noted(cluster) == ["g0", "g1"]
    await settled(50)
    cluster.remove(PODS, "g0-1")
    async with keeping(cluster, OFF):
        await settled(2)
        times = [it.satisfied for name in ("g0", "g1") if (it := cluster.record(name)) is not None]
        assert times == pytest.approx([at, at], abs=1)
        await settled(WAIT)
        found = cluster.record("g0")
        assert found is not None
        assert found.stage is Stage.OPEN
        assert noted(cluster) is None


async def test_nobody_is_taken_back_before_a_successor_has_read_what_was_noted(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        await crowded(cluster)
        bind(cluster, "g0")
        await settled(2)
    cluster.remove(PODS, "g0-1")
    await settled(WAIT)
    trouble = [True]
    get = cluster.get

    async def refused(resource: Resource, name: str, *args: object, **more: object) -> object:
        if name == names.GANG_LEDGER and trouble:
            raise ServerError(500, "InternalError", "not now")
        return await get(resource, name, *args, **more)  # type: ignore[arg-type]

    cluster.get = refused  # type: ignore[method-assign]
    async with keeping(cluster, OFF):
        await settled(20)
        assert "g0-0" in cluster.open()
        trouble.clear()
        await settled(20)
        assert satisfied(cluster, "g0") == ["g0"]
        assert "g0-0" in cluster.open()
        assert "g1-0" not in cluster.open(), "whose limit passed"


@pytest.mark.parametrize("error", [Forbidden(403, "Forbidden", "no"), ServerError(500, "InternalError", "no")])
async def test_where_nothing_can_be_noted_each_group_is_written_down_by_itself(
    cluster: SmallCluster, error: KubeError
) -> None:
    cluster.fate = lambda _, __, name, ___: error if name == names.GANG_LEDGER else None
    async with keeping(cluster, OFF):
        await crowded(cluster)
        bind(cluster, "g0")
        await settled(1)
        assert satisfied(cluster) == ["g0"]
        bind(cluster, "g1")
        await settled(0.3)
        assert satisfied(cluster) == ["g0", "g1"]


async def test_a_list_has_an_end(cluster: SmallCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "MOST", 2)
    async with keeping(cluster, OFF):
        await crowded(cluster)
        for name in CROWD[:4]:
            bind(cluster, name)
            await settled(0.3)
        await settled(1)
        assert noted(cluster) == ["g0", "g1"]
        assert satisfied(cluster) == ["g2", "g3"]


async def test_it_is_written_down_when_the_group_loses_a_pod(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        await crowded(cluster)
        bind(cluster, "g0")
        await settled(2)
        assert satisfied(cluster) == []
        cluster.remove(PODS, "g0-1")
        await settled(0.5)
        assert satisfied(cluster) == ["g0"]


async def test_it_is_written_down_in_time_also_if_the_rush_goes_on(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        await crowded(cluster)
        bind(cluster, "g0")
        await settled(LONGEST + 1)
        assert satisfied(cluster) == ["g0"]


async def test_a_group_that_was_not_sure_of_its_room_is_written_down_at_once_since_another_waits_for_its_turn(
    cluster: SmallCluster,
) -> None:
    async with keeping(cluster, Groups(capacity_check=Check.PROBE)):
        add_node(cluster, cpu=str(2 * len(CROWD) - 1))
        await crowded(cluster)
        unsure = [name for name in CROWD if (it := cluster.record(name)) is not None and it.how is How.PROBE]
        assert len(unsure) == 1
        bind(cluster, *unsure, CROWD[0])
        await settled(0.3)
        assert satisfied(cluster) == unsure


async def test_what_was_noted_of_groups_that_are_gone_is_cleared_away_by_a_successor(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        await crowded(cluster)
        bind(cluster, "g0")
        await settled(2)
    for kind, name in ((PLUGINS, "g0"), (PODS, "g0-0"), (PODS, "g0-1")):
        cluster.remove(kind, name)
    async with keeping(cluster, OFF):
        await settled(5)
        assert noted(cluster) is None


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        '{"kep-24/team/g": 1}',
        '{"no-design/team/g": [1, 1.0, 1.0]}',
        '{"g": [1, 1, 1]}',
        '{"a/b/c": [1]}',
    ],
)
async def test_what_nobody_of_us_has_written_says_nothing_and_goes(cluster: SmallCluster, text: str) -> None:
    leave(cluster, text)
    async with keeping(cluster, OFF):
        await crowded(cluster)
        await settled(5)
        assert len(cluster.open()) == 2 * len(CROWD)
        assert noted(cluster) is None


async def test_what_a_record_tells_by_now_is_cleared_away_by_a_successor(cluster: SmallCluster) -> None:
    async with keeping(cluster, OFF):
        cluster.gather("g0", "g0-0", "g0-1", minimum=2)
        await settled(3)
        bind(cluster, "g0")
        await settled(1)
    found = cluster.record("g0")
    assert found is not None
    line = {"scheduler-plugins/team/g0": [found.generation, found.at, found.satisfied]}
    leave(cluster, json.dumps(line))
    async with keeping(cluster, OFF):
        await settled(5)
        assert noted(cluster) is None
        assert cluster.record("g0") == found
