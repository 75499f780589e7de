"""Who begins a new generation of a group that was satisfied, and who comes to the old one (G3); virtual time."""

from __future__ import annotations

import pytest

from jobset_gate import names
from jobset_gate.groups.candidates import Check
from jobset_gate.groups.generation import JOIN_SECONDS
from jobset_gate.groups.model import Design
from jobset_gate.groups.record import Stage
from jobset_gate.kube.resources import PODS
from jobset_gate.settings import Groups
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import PLUGINS, SmallCluster, add_node, keeping, settled
from tests.jobset_gate.groups.builders import GANG, Json
from tests.jobset_gate.groups.objects import key

OFF = Groups(capacity_check=Check.OFF)
ASKS = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


def of(owner: str, uid: str = "", kind: str = "Job") -> Json:
    made_by = {"apiVersion": "batch/v1", "kind": kind, "name": owner, "uid": uid or f"uid-{owner}", "controller": True}
    return {"ownerReferences": [made_by]}


def end(cluster: SmallCluster, *pods: str, phase: str = "Succeeded") -> None:
    for name in pods:
        cluster.change(PODS, name, {"status": {"phase": phase}})


def mark(cluster: SmallCluster, *pods: str) -> None:
    """They are being deleted."""
    for name in pods:
        cluster.change(PODS, name, {"metadata": {"deletionTimestamp": "2026-08-01T10:00:00Z"}})


async def placed(cluster: SmallCluster, owner: Json, *pods: str) -> None:
    """Its first run."""
    cluster.gather("g", *pods, minimum=2, meta=owner, spec=ASKS)
    await settled(2)
    cluster.bind(*pods)
    await settled(60)


def stands(cluster: SmallCluster) -> tuple[int, Stage, bool]:
    found = cluster.record()
    assert found is not None
    return found.generation, found.stage, found.satisfied is not None


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
async def test_a_job_tries_again_what_has_failed_and_its_group_does_not_gather_for_that(
    cluster: SmallCluster, phase: str
) -> None:
    """It never will have its minimum of pods again."""
    async with keeping(cluster, OFF):
        await placed(cluster, of("j"), "a", "b")
        end(cluster, "a", phase="Failed")
        end(cluster, "b", phase=phase)
        cluster.gather("g", "again", meta=of("j"))
        await settled(1)
        assert "again" in cluster.open()
        assert stands(cluster) == (1, Stage.OPEN, True)


async def test_pods_of_a_new_owner_join_while_somebody_is_alive(cluster: SmallCluster) -> None:
    """The next ReplicaSet of a Deployment never has the minimum of pods for itself before the last one lets go."""
    async with keeping(cluster, OFF):
        await placed(cluster, of("old", kind="ReplicaSet"), "a", "b")
        cluster.gather("g", "new-0", meta=of("new", kind="ReplicaSet"))
        await settled(JOIN_SECONDS - 1)
        assert "new-0" not in cluster.open()
        await settled(2)
        assert "new-0" in cluster.open()
        mark(cluster, "a")
        cluster.gather("g", "new-1", meta=of("new", kind="ReplicaSet"))
        await settled(1)
        assert "new-1" in cluster.open(), "its owner is known by now"
        assert stands(cluster) == (1, Stage.OPEN, True)


@pytest.mark.parametrize("name", ["one", "another"])
async def test_pods_of_the_next_job_do_not_join_those_that_are_about_to_be_deleted(
    cluster: SmallCluster, name: str
) -> None:
    async with keeping(cluster, OFF):
        await placed(cluster, of("one", "uid-1"), "a", "b")
        cluster.gather("g", "c", meta=of(name, "uid-2"))
        await settled(1)
        mark(cluster, "a", "b")
        await settled(60)
        assert "c" not in cluster.open(), "alone it is not the minimum"
        cluster.gather("g", "d", meta=of(name, "uid-2"))
        await settled(2)
        assert cluster.open() == ["a", "b", "c", "d"]
        assert stands(cluster) == (2, Stage.OPEN, False)


async def test_of_a_job_that_was_made_anew_under_its_name_nothing_counts_however_late_its_pods_go(
    cluster: SmallCluster,
) -> None:
    async with keeping(cluster, OFF):
        await placed(cluster, of("one", "uid-1"), "a", "b")
        cluster.gather("g", "c", meta=of("one", "uid-2"))
        await settled(60)
        assert "c" not in cluster.open()
        assert stands(cluster)[1] is Stage.CLOSED


async def test_gangs_that_open_together_are_held_together_when_they_are_used_again(cluster: SmallCluster) -> None:
    both = '["team/one","team/two"]'

    def gang(name: str, pod: str, owner: str) -> None:
        notes = {f"{GANG}name": name, f"{GANG}min-available": "1", f"{GANG}groups": both}
        cluster.gather(name, pod, of=key(name, Design.KOORDINATOR), labels={}, notes=notes, meta=of(owner))

    async with keeping(cluster, OFF):
        gang("one", "a", "first")
        gang("two", "b", "second")
        await settled(2)
        cluster.bind("a", "b")
        await settled(10)
        end(cluster, "a", "b")
        gang("one", "a2", "third")
        await settled(30)
        assert cluster.open() == ["a", "b"]
        gang("two", "b2", "fourth")
        await settled(2)
        assert sorted(cluster.open()) == ["a", "a2", "b", "b2"]


async def test_what_the_last_run_has_left_is_none_of_the_next_ones_numbers(cluster: SmallCluster) -> None:
    add_node(cluster, cpu="3")
    async with keeping(cluster):
        await placed(cluster, of("one"), "a", "b")
        end(cluster, "a")
        end(cluster, "b")
        cluster.gather("g", "c", meta=of("two"), spec=ASKS)
        await settled(60)
        found = cluster.there(PLUGINS, "team", "g")
        assert (found["status"]["phase"], found["status"]["succeeded"]) == ("Pending", 0)
        told = f"Pending: {names.REASON_GATHERING}: 1/2 pods exist"
        assert found["metadata"]["annotations"][names.GANG_STATE] == told


@pytest.mark.parametrize("gone", ["marked", "ended"])
async def test_a_successor_holds_them_as_well(cluster: SmallCluster, gone: str) -> None:
    async with keeping(cluster, OFF):
        await placed(cluster, of("one"), "a", "b")
    mark(cluster, "a", "b") if gone == "marked" else end(cluster, "a", "b")
    cluster.gather("g", "c", meta=of("two"))
    async with keeping(cluster, OFF):
        await settled(60)
        assert cluster.open() == ["a", "b"]
