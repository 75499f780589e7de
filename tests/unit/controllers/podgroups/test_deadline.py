"""The scheduling deadline: when it runs, whether the minimum was bound, what a higher priority ends (G3, G4)."""

from __future__ import annotations

from typing import Any

from jobset_gate import names
from jobset_gate.kube.errors import Forbidden, KubeError, ServerError
from jobset_gate.kube.resources import EVENTS, JOBS, NODES, PODS, Resource
from jobset_gate.podgroups.record import AdmissionState
from tests.fakes.podgroups.cluster import OFF, OWNED, PROBE, InMemoryCluster, add_node, run_for, running_controller
from tests.fakes.podgroups.objects import made_by, node
from tests.fakes.podgroups.sources import Json

PORTS: Json = {"containers": [{"name": "main", "ports": [{"hostPort": 80}]}]}
"""The spec of a pod that cannot be proven to fit."""
IN = {zone: {"nodeSelector": {"zone": zone}} for zone in ("short", "stuck")}
"""Pods for different nodes, so that both groups may be tried at once."""


async def test_time_under_another_gate_does_not_count(cluster: InMemoryCluster) -> None:
    """Also not that of a pod that has come in the place of one that was opened; but not for ever."""
    async with running_controller(cluster, PROBE):
        for name, pod in (("short", "b"), ("stuck", "d")):
            cluster.put(NODES, node(name, cpu="100m", labels={"zone": name}))
            cluster.create_group(name, f"{pod}-0", f"{pod}-1", minimum=2, meta=OWNED, spec=IN[name])
            await run_for()
            cluster.bind(f"{pod}-0")
            cluster.remove(PODS, f"{pod}-1")
            cluster.create_group(
                name, f"{pod}-2", meta=OWNED, spec=IN[name], gates=(names.POD_GROUP_GATE, "kueue.x-k8s.io/admission")
            )
        await run_for(600)
        assert {cluster.recorded(it).stage for it in ("short", "stuck")} == {AdmissionState.OPEN}
        cluster.patch_object(PODS, "b-2", {"spec": {"schedulingGates": []}})
        await run_for(50)
        assert cluster.recorded("short").stage is AdmissionState.OPEN
        await run_for(15)
        assert cluster.recorded("short").rolled_back == 1
        await run_for(3600)
        assert cluster.recorded("stuck").rolled_back == 1


async def test_a_group_whose_minimum_was_bound_is_satisfied_whatever_comes_before_that_is_written(
    cluster: InMemoryCluster,
) -> None:
    refused: list[str] = []

    def fate(_verb: str, _kind: Resource, name: str, body: Json) -> ServerError | None:
        if '"satisfied":1' not in str(body):
            return None
        refused.append(name)
        return ServerError(500, "InternalError", "not now")

    async with running_controller(cluster, OFF):
        for name in ("bound", "late"):
            cluster.create_group(name, f"{name}-0", f"{name}-1", minimum=2, meta=OWNED)
        await run_for(3)
        cluster.fault = fate
        cluster.bind("bound-0", "bound-1")
        await run_for(0.4)
        assert refused[0] == "bound"
        cluster.remove(PODS, "bound-1")
        cluster.fault = lambda *_: None
        await run_for(110)
        found = cluster.recorded("bound")
        assert (found.satisfied is not None, found.stage) == (True, AdmissionState.OPEN)
        assert "bound-0" in cluster.ungated_pods()
        assert "late-0" not in cluster.ungated_pods(), "whose limit has passed"


async def test_a_group_whose_pod_is_nominated_keeps_its_time_but_not_for_ever(cluster: InMemoryCluster) -> None:
    add_node(cluster, cpu="4")
    async with running_controller(cluster):
        cluster.create_group("high", "x", minimum=1, meta=OWNED, spec=PORTS | {"priority": 9})
        await run_for()
        cluster.patch_object(PODS, "x", {"status": {"nominatedNodeName": "n"}})
        await run_for(3500)
        assert cluster.recorded("high").stage is AdmissionState.OPEN
        await run_for(200)
        assert cluster.recorded("high").rolled_back == 1


# --- What becomes of those that are taken back (G4) -------------------------------------------------------------------

WAIT = {"scheduleTimeoutSeconds": 60}


def job(cluster: InMemoryCluster, name: str) -> Json:
    """A Job, and what its pods say of it."""
    cluster.put(JOBS, {"metadata": {"name": name, "namespace": "team", "uid": f"uid-{name}"}, "spec": {}})
    return made_by(name)


def suspended(cluster: InMemoryCluster, name: str) -> bool:
    return bool(cluster.stored(JOBS, "team", name)["spec"].get("suspend"))


def refuse(cluster: InMemoryCluster, verb: str, message: str, name: str = "") -> None:
    """A policy refuses such writes, or those to this object."""

    def policy(asked: str, _: Resource, about: str, __: Any) -> KubeError | None:
        return Forbidden(403, "Forbidden", message) if asked == verb and name in ("", about) else None

    cluster.fault = policy


def reported(cluster: InMemoryCluster) -> set[str]:
    """Why something could not be taken back."""
    return {it["message"] for it in cluster.all(EVENTS) if it["reason"] == names.REASON_ROLLBACK_BLOCKED}


async def test_a_refused_suspension_is_reported_and_stops_no_other(cluster: InMemoryCluster) -> None:
    """A policy of the cluster does not let us suspend a Job: the rest is taken back all the same."""
    refuse(cluster, "patch", "policy no-suspend denied the request", "one")
    async with running_controller(cluster, OFF):
        cluster.create_group("g", "a", minimum=3, terms=WAIT, meta=job(cluster, "one"))
        cluster.create_group("g", "b", meta=job(cluster, "two"))
        cluster.create_group("g", "c", meta=made_by("three", kind="ReplicaSet"))
        await run_for(70)
        assert suspended(cluster, "two")
        assert "c" not in cluster.ungated_pods()
        cluster.remove(PODS, "b")
        await run_for(40)
        assert reported(cluster) == {"Job one may not be changed: policy no-suspend denied the request"}
        assert cluster.recorded().stage is AdmissionState.ROLLING_BACK
        cluster.fault = lambda *_: None
        await run_for(40)
        assert suspended(cluster, "one")


async def test_a_job_that_kueue_has_taken_over_is_left_suspended(cluster: InMemoryCluster) -> None:
    """Its user has put it into a queue meanwhile: whether it goes on is Kueue's to say."""
    async with running_controller(cluster, OFF):
        cluster.create_group("g", "a", minimum=1, terms=WAIT, meta=job(cluster, "one"))
        await run_for(62)
        assert suspended(cluster, "one")
        cluster.patch_object(JOBS, "one", {"metadata": {"labels": {names.KUEUE_QUEUE: "team"}}})
        cluster.remove(PODS, "a")
        await run_for(10)
        found = cluster.stored(JOBS, "team", "one")
        assert found["spec"]["suspend"] is True
        assert names.POD_GROUP_SUSPENDED not in found["metadata"]["labels"]


async def test_a_pod_that_may_not_get_the_disruption_condition_is_not_deleted(cluster: InMemoryCluster) -> None:
    refuse(cluster, "patch status", "no conditions", "a")
    async with running_controller(cluster, OFF):
        meta = made_by("r", kind="ReplicaSet")
        cluster.create_group("g", "a", "b", minimum=2, terms=WAIT, meta=meta)
        await run_for(70)
        assert [it["metadata"]["name"] for it in cluster.all(PODS)] == ["a"]
        cluster.fault = lambda *_: None
        await run_for(40)
        assert cluster.all(PODS) == []
        found = cluster.recorded()
        assert (found.stage, found.rolled_back) == (AdmissionState.CLOSED, 1)


async def test_of_many_refusals_a_few_are_listed_and_each_is_cut(cluster: InMemoryCluster) -> None:
    refuse(cluster, "patch status", "no " * 1000)
    async with running_controller(cluster, OFF):
        pods = [f"p{number:02}" for number in range(20)]
        cluster.create_group("g", *pods, minimum=20, terms=WAIT, meta=made_by("r", kind="ReplicaSet"))
        await run_for(100)
        (message,) = reported(cluster)
        assert message.count("may not be changed") == 3
        assert message.startswith("Pod p00 may not be changed: no no")
        assert message.endswith("; and 17 more")
        assert len(message) < 1024, "an Event takes no more"
