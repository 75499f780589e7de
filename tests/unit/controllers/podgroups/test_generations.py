"""Which pods begin a new generation of a satisfied group, and which join the old one (G3); virtual time."""

from __future__ import annotations

import pytest

from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.generation import JOIN_SECONDS
from jobset_gate.podgroups.record import AdmissionState
from tests.fakes.podgroups.cluster import OFF, InMemoryCluster, run_for, running_controller
from tests.fakes.podgroups.sources import Json

ASKS = {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}


def of(owner: str, uid: str = "", kind: str = "Job") -> Json:
    made_by = {"apiVersion": "batch/v1", "kind": kind, "name": owner, "uid": uid or f"uid-{owner}", "controller": True}
    return {"ownerReferences": [made_by]}


def end(cluster: InMemoryCluster, *pods: str, phase: str = "Succeeded") -> None:
    for name in pods:
        cluster.patch_object(PODS, name, {"status": {"phase": phase}})


def mark(cluster: InMemoryCluster, *pods: str) -> None:
    """They are being deleted."""
    for name in pods:
        cluster.patch_object(PODS, name, {"metadata": {"deletionTimestamp": "2026-08-01T10:00:00Z"}})


async def placed(cluster: InMemoryCluster, owner: Json, *pods: str) -> None:
    """Its first run."""
    cluster.create_group("g", *pods, minimum=2, meta=owner, spec=ASKS)
    await run_for(2)
    cluster.bind(*pods)
    await run_for(60)


def stands(cluster: InMemoryCluster) -> tuple[int, AdmissionState, bool]:
    found = cluster.recorded()
    return found.generation, found.stage, found.satisfied is not None


@pytest.mark.parametrize("phase", ["Failed", "Succeeded"])
async def test_a_job_tries_again_what_has_failed_and_its_group_does_not_gather_for_that(
    cluster: InMemoryCluster, phase: str
) -> None:
    """It never will have its minimum of pods again."""
    async with running_controller(cluster, OFF):
        await placed(cluster, of("j"), "a", "b")
        end(cluster, "a", phase="Failed")
        end(cluster, "b", phase=phase)
        cluster.create_group("g", "again", meta=of("j"))
        await run_for(1)
        assert "again" in cluster.ungated_pods()
        assert stands(cluster) == (1, AdmissionState.OPEN, True)


async def test_pods_of_a_new_owner_join_while_a_pod_is_alive(cluster: InMemoryCluster) -> None:
    """The next ReplicaSet of a Deployment never has the minimum of pods for itself before the last one lets go."""
    async with running_controller(cluster, OFF):
        await placed(cluster, of("old", kind="ReplicaSet"), "a", "b")
        cluster.create_group("g", "new-0", meta=of("new", kind="ReplicaSet"))
        await run_for(JOIN_SECONDS - 1)
        assert "new-0" not in cluster.ungated_pods()
        await run_for(2)
        assert "new-0" in cluster.ungated_pods()
        mark(cluster, "a")
        cluster.create_group("g", "new-1", meta=of("new", kind="ReplicaSet"))
        await run_for(1)
        assert "new-1" in cluster.ungated_pods(), "its owner is known by now"
        assert stands(cluster) == (1, AdmissionState.OPEN, True)


@pytest.mark.parametrize("name", ["one", "another"])
async def test_pods_of_the_next_job_do_not_join_those_that_are_about_to_be_deleted(
    cluster: InMemoryCluster, name: str
) -> None:
    async with running_controller(cluster, OFF):
        await placed(cluster, of("one", "uid-1"), "a", "b")
        cluster.create_group("g", "c", meta=of(name, "uid-2"))
        await run_for(1)
        mark(cluster, "a", "b")
        await run_for(60)
        assert "c" not in cluster.ungated_pods(), "alone it is not the minimum"
        cluster.create_group("g", "d", meta=of(name, "uid-2"))
        await run_for(2)
        assert cluster.ungated_pods() == ["a", "b", "c", "d"]
        assert stands(cluster) == (2, AdmissionState.OPEN, False)


async def test_gangs_that_open_together_are_held_together_when_they_are_used_again(cluster: InMemoryCluster) -> None:
    def gang(name: str, pod: str, owner: str) -> None:
        cluster.create_gang(name, pod, partners="one two", meta=of(owner))

    async with running_controller(cluster, OFF):
        gang("one", "a", "first")
        gang("two", "b", "second")
        await run_for(2)
        cluster.bind("a", "b")
        await run_for(10)
        end(cluster, "a", "b")
        gang("one", "a2", "third")
        await run_for(30)
        assert cluster.ungated_pods() == ["a", "b"]
        gang("two", "b2", "fourth")
        await run_for(2)
        assert sorted(cluster.ungated_pods()) == ["a", "a2", "b", "b2"]


@pytest.mark.parametrize("gone", ["marked", "ended"])
async def test_a_successor_holds_them_as_well(cluster: InMemoryCluster, gone: str) -> None:
    async with running_controller(cluster, OFF):
        await placed(cluster, of("one"), "a", "b")
    mark(cluster, "a", "b") if gone == "marked" else end(cluster, "a", "b")
    cluster.create_group("g", "c", meta=of("two"))
    async with running_controller(cluster, OFF):
        await run_for(60)
        assert cluster.ungated_pods() == ["a", "b"]
