"""A group of higher priority, and those that have the room or the place which it needs (G3, G4)."""

from __future__ import annotations

import pytest

from jobset_gate import names
from jobset_gate.fake.clock import VirtualClock
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.record import AdmissionMode, AdmissionState
from tests.fakes.podgroups.cluster import OWNED, InMemoryCluster, add_node, asking, run_for, running_controller
from tests.fakes.podgroups.sources import Json

PORTS: Json = {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]}


@pytest.fixture
async def cluster(clock: VirtualClock) -> InMemoryCluster:
    made = InMemoryCluster(clock)
    add_node(made, cpu="4")
    return made


async def test_it_ends_the_try_of_a_lower_one(cluster: InMemoryCluster) -> None:
    """Which has half an hour to come, and will never be whole."""
    async with running_controller(cluster):
        long = {"scheduleTimeoutSeconds": 1800}
        cluster.create_group("low", "a", "b", minimum=2, meta=OWNED, spec=PORTS | {"priority": 10}, terms=long)
        await run_for(60)
        cluster.bind("a")
        cluster.create_group("same", "s", minimum=1, meta=OWNED, spec=PORTS | {"priority": 10})
        await run_for(30)
        assert cluster.ungated_pods() == ["a", "b"], "not for one of its own rank"
        cluster.create_group("high", "x", minimum=1, meta=OWNED, spec=PORTS | {"priority": 1000})
        await run_for(30)
        assert cluster.ungated_pods() == ["x"]
        found = cluster.recorded("low")
        assert (found.rolled_back, found.why) == (1, "1 of 2 pods were bound when a group of higher priority came")


async def test_a_group_that_is_placed_by_then_is_left_alone(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster):
        cluster.create_group("low", "a", minimum=1, meta=OWNED, spec=PORTS | {"priority": 10})
        await run_for(2)
        cluster.create_group("high", "x", minimum=1, meta=OWNED, spec=PORTS | {"priority": 1000})
        await run_for(1)
        assert cluster.ungated_pods() == ["a"], "a few seconds are its own"
        cluster.bind("a")
        await run_for(30)
        assert cluster.ungated_pods() == ["a", "x"]


async def test_time_in_which_the_scheduler_makes_room_does_not_count(cluster: InMemoryCluster) -> None:
    """Its victims take longer to end than its limit is long: it would never run, and kill on."""
    cluster.create_group("low", "v", minimum=1, spec=asking("4"))
    async with running_controller(cluster):
        await run_for()
        cluster.bind("v")
        await run_for()
        cluster.create_group("high", "x", minimum=1, meta=OWNED, spec=asking("4") | {"priority": 9})
        await run_for(5)
        assert "x" in cluster.ungated_pods()
        cluster.patch_object(PODS, "x", {"status": {"nominatedNodeName": "n"}})
        cluster.patch_object(PODS, "v", {"metadata": {"deletionTimestamp": "2026-08-01T10:00:00Z"}})
        await run_for(600)
        assert "x" in cluster.ungated_pods()
        cluster.remove(PODS, "v")
        cluster.bind("x")
        await run_for(5)
        found = cluster.recorded("high")
        assert found.satisfied is not None


async def test_but_not_for_ever(cluster: InMemoryCluster) -> None:
    async with running_controller(cluster):
        cluster.create_group("high", "x", minimum=1, meta=OWNED, spec=PORTS | {"priority": 9})
        await run_for()
        cluster.patch_object(PODS, "x", {"status": {"nominatedNodeName": "n"}})
        await run_for(3500)
        found = cluster.recorded("high")
        assert found.stage is AdmissionState.OPEN
        await run_for(200)
        found = cluster.recorded("high")
        assert found.rolled_back == 1


async def test_after_a_proof_that_was_wrong_the_next_try_is_one_without(cluster: InMemoryCluster) -> None:
    """So that its room is not kept from others for the whole limit again."""
    async with running_controller(cluster):
        cluster.create_group("g", "a", minimum=1, meta=OWNED)
        await run_for()
        found = cluster.recorded()
        assert found.how is AdmissionMode.FIT
        await run_for(65)
        cluster.create_group("g", "b", meta=OWNED)
        await run_for(20)
        found = cluster.recorded()
        assert (found.how, found.generation, cluster.ungated_pods()) == (AdmissionMode.PROBE, 2, ["b"])
        cluster.create_group("other", "x", minimum=1, meta=OWNED, spec=PORTS)
        await run_for(5)
        assert names.POD_GROUP_RECORD not in str(cluster.record("other"))
        cluster.bind("b")
        await run_for(5)
        found = cluster.recorded()
        assert (found.rolled_back, cluster.ungated_pods()) == (0, ["b", "x"])
