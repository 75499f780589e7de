"""A group of higher priority, and those that have the room or the place which it needs (G3, G4)."""

from __future__ import annotations

import pytest

from jobset_gate import names
from jobset_gate.groups.record import How, Stage
from jobset_gate.kube.resources import PODS
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import SmallCluster, add_node, keeping, settled
from tests.controllers.groups.test_forged import MADE, asking
from tests.jobset_gate.groups.builders import Json

PORTS: Json = {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]}


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    made = SmallCluster(clock)
    add_node(made, cpu="4")
    return made


async def test_it_ends_the_try_of_a_lower_one(cluster: SmallCluster) -> None:
    """Which has half an hour to come, and will never be whole."""
    async with keeping(cluster):
        long = {"scheduleTimeoutSeconds": 1800}
        cluster.gather("low", "a", "b", minimum=2, meta=MADE, spec=PORTS | {"priority": 10}, terms=long)
        await settled(60)
        cluster.bind("a")
        cluster.gather("same", "s", minimum=1, meta=MADE, spec=PORTS | {"priority": 10})
        await settled(30)
        assert cluster.open() == ["a", "b"], "not for one of its own rank"
        cluster.gather("high", "x", minimum=1, meta=MADE, spec=PORTS | {"priority": 1000})
        await settled(30)
        assert cluster.open() == ["x"]
        found = cluster.record("low")
        assert found is not None
        assert (found.rolled_back, found.why) == (1, "1 of 2 pods were bound when a group of higher priority came")


async def test_a_group_that_is_placed_by_then_is_left_alone(cluster: SmallCluster) -> None:
    async with keeping(cluster):
        cluster.gather("low", "a", minimum=1, meta=MADE, spec=PORTS | {"priority": 10})
        await settled(2)
        cluster.gather("high", "x", minimum=1, meta=MADE, spec=PORTS | {"priority": 1000})
        await settled(1)
        assert cluster.open() == ["a"], "a few seconds are its own"
        cluster.bind("a")
        await settled(30)
        assert cluster.open() == ["a", "x"]


async def test_time_in_which_the_scheduler_makes_room_does_not_count(cluster: SmallCluster) -> None:
    """Its victims take longer to end than its limit is long: it would never run, and kill on."""
    cluster.gather("low", "v", minimum=1, spec=asking("4"))
    async with keeping(cluster):
        await settled()
        cluster.bind("v")
        await settled()
        cluster.gather("high", "x", minimum=1, meta=MADE, spec=asking("4") | {"priority": 9})
        await settled(5)
        assert "x" in cluster.open()
        cluster.change(PODS, "x", {"status": {"nominatedNodeName": "n"}})
        cluster.change(PODS, "v", {"metadata": {"deletionTimestamp": "2026-08-01T10:00:00Z"}})
        await settled(600)
        assert "x" in cluster.open()
        cluster.remove(PODS, "v")
        cluster.bind("x")
        await settled(5)
        found = cluster.record("high")
        assert found is not None
        assert found.satisfied is not None


async def test_but_not_for_ever(cluster: SmallCluster) -> None:
    async with keeping(cluster):
        cluster.gather("high", "x", minimum=1, meta=MADE, spec=PORTS | {"priority": 9})
        await settled()
        cluster.change(PODS, "x", {"status": {"nominatedNodeName": "n"}})
        await settled(3500)
        found = cluster.record("high")
        assert found is not None
        assert found.stage is Stage.OPEN
        await settled(200)
        found = cluster.record("high")
        assert found is not None
        assert found.rolled_back == 1


async def test_after_a_proof_that_was_wrong_the_next_try_is_one_without(cluster: SmallCluster) -> None:
    """So that its room is not kept from others for the whole limit again."""
    async with keeping(cluster):
        cluster.gather("g", "a", minimum=1, meta=MADE)
        await settled()
        found = cluster.record()
        assert found is not None
        assert found.how is How.FIT
        await settled(65)
        cluster.gather("g", "b", meta=MADE)
        await settled(20)
        found = cluster.record()
        assert found is not None
        assert (found.how, found.generation, cluster.open()) == (How.PROBE, 2, ["b"])
        cluster.gather("other", "x", minimum=1, meta=MADE, spec=PORTS)
        await settled(5)
        assert names.GANG_RECORD not in str(cluster.record("other"))
        cluster.bind("b")
        await settled(5)
        found = cluster.record()
        assert found is not None
        assert (found.rolled_back, cluster.open()) == (0, ["b", "x"])
