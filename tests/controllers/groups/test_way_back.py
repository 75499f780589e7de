"""Whoever was suspended for a roll-back goes on again, and whoever refuses to be taken back is told of (G4)."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.groups.candidates import Check
from jobset_gate.groups.model import Design
from jobset_gate.groups.record import Stage, parse
from jobset_gate.kube.errors import Forbidden, KubeError
from jobset_gate.kube.resources import EVENTS, JOBS, POD_GROUPS, PODS, Resource
from jobset_gate.settings import Groups
from jobset_gate.sim.clock import VirtualClock
from tests.controllers.groups.small import SmallCluster, keeping, settled
from tests.jobset_gate.groups.builders import Json
from tests.jobset_gate.groups.objects import key, pod_group

OFF = Groups(capacity_check=Check.OFF)
SIGS = POD_GROUPS[names.SIGS_GROUP]
WAIT = {"scheduleTimeoutSeconds": 60}


@pytest.fixture
async def cluster(clock: VirtualClock) -> SmallCluster:
    return SmallCluster(clock)


def job(cluster: SmallCluster, name: str, namespace: str = "team", **meta: Any) -> Json:
    """A Job, and what its pods say of it."""
    cluster.put(JOBS, {"metadata": {"name": name, "namespace": namespace, "uid": f"u-{name}", **meta}, "spec": {}})
    return made_by("batch/v1", "Job", name)


def made_by(version: str, kind: str, name: str) -> Json:
    return {
        "ownerReferences": [
            {"apiVersion": version, "kind": kind, "name": name, "uid": f"u-{name}", "controller": True}
        ],
        "finalizers": [],
    }


def suspended(cluster: SmallCluster, name: str, namespace: str = "team") -> bool:
    found = cluster.there(JOBS, namespace, name)
    return bool(found["spec"].get("suspend"))


def gang(cluster: SmallCluster, name: str, pod: str, meta: Json) -> None:
    """One pod of a gang that opens together with another."""
    notes = {names.KOORDINATOR_GANGS: '["team/one","team/two"]'}
    cluster.put(SIGS, pod_group(name, notes=notes, spec={"minMember": 1, **WAIT}))
    of = key(name, Design.KOORDINATOR)
    cluster.gather(name, pod, of=of, labels={names.KOORDINATOR_LABEL: name}, meta=meta)


async def test_a_gang_that_lost_its_pod_group_is_taken_back_with_the_others_and_its_job_goes_on(
    cluster: SmallCluster,
) -> None:
    async with keeping(cluster, OFF):
        for name, pod in (("one", "a"), ("two", "b")):
            gang(cluster, name, pod, job(cluster, name))
        await settled()
        assert cluster.open() == ["a", "b"]
        cluster.remove(SIGS, "two")
        await settled(62)
        assert suspended(cluster, "one")
        assert suspended(cluster, "two")
        cluster.remove(PODS, "a")  # by the Job controller
        cluster.remove(PODS, "b")
        await settled(10)
        found = parse(cluster.there(SIGS, "team", "one")["metadata"]["annotations"][names.GANG_RECORD])
        assert found.stage is Stage.CLOSED
        assert not suspended(cluster, "one")
        assert not suspended(cluster, "two")


async def test_what_one_owner_refuses_keeps_nobody_else_and_people_are_told(cluster: SmallCluster) -> None:
    """A policy of the cluster does not let us suspend a Job: the rest is taken back all the same."""

    def policy(verb: str, resource: Resource, name: str, _: Any) -> KubeError | None:
        refused = (verb, resource, name) == ("patch", JOBS, "one")
        return Forbidden(403, "Forbidden", "policy no-suspend denied the request") if refused else None

    cluster.fate = policy
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", minimum=3, terms=WAIT, meta=job(cluster, "one"))
        cluster.gather("g", "b", meta=job(cluster, "two"))
        cluster.gather("g", "c", meta=made_by("apps/v1", "ReplicaSet", "three"))
        await settled(70)
        assert suspended(cluster, "two")
        assert "c" not in cluster.open()
        cluster.remove(PODS, "b")
        await settled(40)
        told = {it["message"] for it in cluster.all(EVENTS) if it["reason"] == names.REASON_ROLLBACK_BLOCKED}
        assert told == {"Job one may not be changed: policy no-suspend denied the request"}
        found = cluster.record()
        assert found is not None
        assert found.stage is Stage.ROLLING_BACK
        cluster.fate = lambda *_: None
        await settled(40)
        assert suspended(cluster, "one")


async def test_a_koordinator_gang_of_bare_pods_is_tried_again_once_its_user_has_taken_them_all_away(
    cluster: SmallCluster,
) -> None:
    """Nobody would make them anew, so new ones are the user's, who has read that all have to go first."""
    said = {f"{names.KOORDINATOR_PREFIX}{name}": value for name, value in (("name", "g"), ("min-available", "2"))}
    said |= {f"{names.KOORDINATOR_PREFIX}waiting-time": "60s"}
    of = key("g", Design.KOORDINATOR)
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", "b", of=of, labels={}, notes=said)
        await settled(70)
        assert cluster.open() == ["a", "b"]
        cluster.remove(PODS, "a")
        cluster.remove(PODS, "b")
        await settled(5)
        cluster.gather("g", "c", "d", of=of, labels={}, notes=said)
        await settled(15)
        assert cluster.open() == ["c", "d"]


async def test_whom_kueue_has_taken_over_is_left_suspended_by_it(cluster: SmallCluster) -> None:
    """Its user has put it into a queue meanwhile: whether it goes on is Kueue's to say."""
    async with keeping(cluster, OFF):
        cluster.gather("g", "a", minimum=1, terms=WAIT, meta=job(cluster, "one"))
        await settled(62)
        assert suspended(cluster, "one")
        cluster.change(JOBS, "one", {"metadata": {"labels": {names.KUEUE_QUEUE: "team"}}})
        cluster.remove(PODS, "a")
        await settled(10)
        found = cluster.there(JOBS, "team", "one")
        assert found["spec"]["suspend"] is True
        assert names.GANG_SUSPENDED not in found["metadata"]["labels"]


async def test_a_pod_of_whom_it_may_not_be_said_that_it_is_no_failure_is_not_deleted(cluster: SmallCluster) -> None:
    def policy(verb: str, _: Resource, name: str, __: Any) -> KubeError | None:
        return Forbidden(403, "Forbidden", "no conditions") if (verb, name) == ("patch status", "a") else None

    cluster.fate = policy
    async with keeping(cluster, OFF):
        meta = made_by("apps/v1", "ReplicaSet", "r")
        cluster.gather("g", "a", "b", minimum=2, terms=WAIT, meta=meta)
        await settled(70)
        assert [it["metadata"]["name"] for it in cluster.all(PODS)] == ["a"]
        cluster.fate = lambda *_: None
        await settled(40)
        assert cluster.all(PODS) == []
        found = cluster.record()
        assert found is not None
        assert (found.stage, found.rolled_back) == (Stage.CLOSED, 1)


async def test_of_many_refusals_a_few_are_told_and_each_of_them_in_short(cluster: SmallCluster) -> None:
    def policy(verb: str, *_: Any) -> KubeError | None:
        return Forbidden(403, "Forbidden", "no " * 1000) if verb == "patch status" else None

    cluster.fate = policy
    async with keeping(cluster, OFF):
        pods = [f"p{number:02}" for number in range(20)]
        cluster.gather("g", *pods, minimum=20, terms=WAIT, meta=made_by("apps/v1", "ReplicaSet", "r"))
        await settled(100)
        (told,) = {it["message"] for it in cluster.all(EVENTS) if it["reason"] == names.REASON_ROLLBACK_BLOCKED}
        assert told.count("may not be changed") == 3
        assert told.startswith("Pod p00 may not be changed: no no")
        assert told.endswith("; and 17 more")
        assert len(told) < 1024, "an Event takes no more"
