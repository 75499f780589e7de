"""Evictions while other clients write: no other pods, and nothing twice (G4)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from controllers.podgroups.evictor import (
    CONFLICT_RETRY_SECONDS,
    RECHECK_SECONDS,
    RESUME_INTERVAL,
    EvictionResult,
    Evictor,
)
from jobset_gate import names
from jobset_gate.kube.errors import Conflict, KubeError, ServerError
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS, Resource
from jobset_gate.podgroups.model import Flavor, group_label
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate_demo.fake import manifests
from tests.fakes.podgroups.cluster import InMemoryCluster
from tests.fakes.podgroups.objects import key, pod, record
from tests.fakes.podgroups.snapshots import group_snapshot, opened
from tests.fakes.podgroups.sources import Json, alibaba
from tests.fakes.wire_objects import owner

KEY = key("ring", Flavor.ALIBABA)
HELD = group_label(KEY)
MARK = f"{HELD}.3"
FATAL = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}]}
RECORD = record((KEY, 3), stage=AdmissionState.ROLLING_BACK, minimum=2)
OF_TRAIN = {names.JS_NAME: "train"}


class EvictorHarness:
    """A cluster without any controller but the one that evicts."""

    def __init__(self, cluster: InMemoryCluster) -> None:
        self.cluster, self.evictor = cluster, Evictor(cluster.client)

    def before(self, kind: Resource, meddle: Callable[[], KubeError | None], times: int = 1) -> None:
        """What happens just before the evictor's first writes to that kind; an error refuses them."""

        def fault(_: str, resource: Resource, *__: object) -> KubeError | None:
            nonlocal times
            if resource != kind or not times:
                return None
            times -= 1
            return meddle()

        self.cluster.fault = fault

    def job(self, name: str = "work", *, mark: str = "", jobset: str = "", **spec: Any) -> Json:
        """`mark`: of the eviction that has suspended it. `jobset`: the UID of the JobSet `train` that it is of."""
        marks = {names.POD_GROUP_SUSPENDED: mark} if mark else {}
        meta: Json = {"name": name, "namespace": "team", "uid": f"uid-{name}", "annotations": marks}
        meta["labels"] = marks | (OF_TRAIN if jobset else {})
        meta["ownerReferences"] = [owner("JobSet", "train", jobset)] if jobset else []
        spec |= {"selector": {"matchLabels": {names.JOB_CONTROLLER_UID: f"uid-{name}"}}, "suspend": bool(mark)}
        return self.cluster.put(JOBS, {"metadata": meta, "spec": spec})

    def pod(self, name: str, of: Json | None = None, *, kind: str = "Job", held: str = HELD, **more: Any) -> None:
        """One that was opened in this generation and has no node, so that it goes when it is deleted."""
        self.cluster.put(PODS, opened(name, 3, of=KEY, held=held, **self.made_by(of or self.job(), kind), **more))

    def made_by(self, job: Json, kind: str = "Job") -> Json:
        meta = job["metadata"]
        labels = alibaba("ring") | meta["labels"] | {names.JOB_CONTROLLER_UID: meta["uid"]}
        return {"labels": labels, "meta": {"ownerReferences": [owner(kind, meta["name"], meta["uid"])]}}

    def jobset(self, **workers: Any) -> Json:
        parts = [manifests.replicated_job(**workers)]
        return self.cluster.put(JOBSETS, manifests.jobset("train", "team", replicated_jobs=parts))

    async def advance(self) -> float | EvictionResult:
        seen = group_snapshot(*self.cluster.all(PODS), of=KEY, record=RECORD)
        return await self.evictor.advance_eviction([seen], RECORD)

    def mark_of(self, kind: Resource, name: str) -> tuple[Any, str | None]:
        """Whether it is suspended, and whose mark it carries."""
        found = self.cluster.stored(kind, "team", name)
        mark = found["metadata"].get("annotations", {}).get(names.POD_GROUP_SUSPENDED)
        assert mark == found["metadata"].get("labels", {}).get(names.POD_GROUP_SUSPENDED)
        return found["spec"].get("suspend", False), mark


@pytest.fixture
def place(cluster: InMemoryCluster) -> EvictorHarness:
    return EvictorHarness(cluster)


async def test_a_pod_that_has_changed_since_the_plan_is_not_detached(place: EvictorHarness) -> None:
    """It may have succeeded meanwhile, and its Job must hear of that."""
    place.pod("a", place.job(podFailurePolicy=FATAL))
    place.before(PODS, lambda: place.cluster.patch_object(PODS, "a", {"status": {"phase": "Succeeded"}}))
    assert await place.advance() == CONFLICT_RETRY_SECONDS
    assert await place.advance() == EvictionResult()
    assert place.cluster.pod("a")["metadata"]["ownerReferences"]


async def test_an_owner_that_has_changed_since_the_plan_is_read_again(place: EvictorHarness) -> None:
    """Its user has suspended it meanwhile: then it is not ours to resume."""
    place.pod("a")
    place.before(JOBS, lambda: place.cluster.patch_object(JOBS, "work", {"spec": {"suspend": True}}))
    assert await place.advance() == CONFLICT_RETRY_SECONDS
    assert await place.advance() == RECHECK_SECONDS
    assert place.mark_of(JOBS, "work") == (True, None)
    await place.evictor.resume_owners(HELD, 3)
    assert place.mark_of(JOBS, "work") == (True, None)


@pytest.mark.parametrize("kind", ["Job", "ReplicaSet"])
async def test_a_namesake_made_meanwhile_is_not_touched(place: EvictorHarness, kind: str) -> None:
    job = place.job(podFailurePolicy=FATAL)
    place.pod("a", job, kind=kind)

    def again() -> None:
        place.cluster.remove(PODS, "a")
        place.pod("a", job, kind=kind, held="0", uid="another")

    place.before(PODS, again)
    await place.advance()
    kept = place.cluster.pod("a")
    assert kept["metadata"]["ownerReferences"]
    assert names.DISRUPTION_TARGET not in {it["type"] for it in kept["status"].get("conditions", ())}


async def test_a_namesake_of_a_jobset_is_not_suspended_for_pods_of_the_one_before(place: EvictorHarness) -> None:
    """Though a pod of the new one is looked at first."""
    jobset = place.jobset()
    before, after = place.job("before", jobset="gone"), place.job("after", jobset=jobset["metadata"]["uid"])
    place.cluster.put(PODS, pod("a-new", of=KEY, **place.made_by(after)))
    place.pod("b-old", before)
    assert await place.advance() == RECHECK_SECONDS
    assert place.mark_of(JOBSETS, "train") == (False, None)


async def test_nothing_is_read_again_while_nothing_changes(place: EvictorHarness) -> None:
    place.pod("a")
    assert await place.advance() == RECHECK_SECONDS
    assert place.mark_of(JOBS, "work") == (True, MARK)
    asked = len(place.cluster.calls)
    again = await place.advance()
    assert isinstance(again, float)
    assert again <= RECHECK_SECONDS
    assert len(place.cluster.calls) == asked
    place.cluster.remove(PODS, "a")
    assert await place.advance() == EvictionResult()


async def test_one_error_leaves_the_others_done(place: EvictorHarness) -> None:
    """The next look does what was left."""
    for name in "abc":
        place.pod(name, kind="ReplicaSet")
    place.before(PODS, lambda: ServerError(500, "InternalError", "no"))
    with pytest.raises(ServerError):
        await place.advance()
    assert await place.advance() == RECHECK_SECONDS
    assert await place.advance() == EvictionResult()


async def test_a_gated_jobset_is_suspended_only_when_its_jobs_have_observed_the_deletions(
    place: EvictorHarness,
) -> None:
    """Else the Job controller would wait for minutes to hear of pods that it has forgotten a moment later."""
    gated = {"labels": {names.GATED: names.GATED_VALUE}}
    jobset = place.jobset(job={"podFailurePolicy": FATAL}, pod_metadata=gated)
    place.pod("a", place.job(podFailurePolicy=FATAL, jobset=jobset["metadata"]["uid"]))
    assert await place.advance() == RECHECK_SECONDS
    assert place.cluster.all(PODS) == []
    assert place.mark_of(JOBSETS, "train") == (False, MARK)
    assert await place.advance() == RECHECK_SECONDS
    await asyncio.sleep(RECHECK_SECONDS / 2)
    await place.advance()
    assert place.mark_of(JOBSETS, "train") == (False, MARK)
    await asyncio.sleep(RECHECK_SECONDS / 2)
    assert await place.advance() == CONFLICT_RETRY_SECONDS
    assert place.mark_of(JOBSETS, "train") == (True, MARK)
    assert await place.advance() == EvictionResult()
    await place.evictor.resume_owners(HELD, 3)
    assert place.mark_of(JOBSETS, "train") == (False, None)
    assert place.mark_of(JOBS, "work") == (False, None)


async def test_only_what_this_group_has_suspended_is_resumed(place: EvictorHarness) -> None:
    marks = {"mine": MARK, "older": f"{HELD}.2", "newer": f"{HELD}.4", "another": "0.3", "odd": "x"}
    for name, mark in marks.items():
        place.job(name, mark=mark)
    await place.evictor.resume_owners(HELD, 3, "team")
    assert {name for name in marks if not place.mark_of(JOBS, name)[0]} == {"mine", "older"}
    await place.evictor.resume_owners_where(lambda mark: mark[0] == "0")
    assert place.mark_of(JOBS, "another") == (False, None)
    assert place.mark_of(JOBS, "newer") == (True, f"{HELD}.4")


async def test_an_owner_that_a_webhook_does_not_let_resume_is_tried_again_after_a_pause(place: EvictorHarness) -> None:
    place.job(mark=MARK)
    place.before(JOBS, lambda: Conflict(409, "Conflict", "the Job is still being suspended"), times=3)
    before = asyncio.get_running_loop().time()
    await place.evictor.resume_owners(HELD, 3)
    assert place.mark_of(JOBS, "work") == (False, None)
    assert asyncio.get_running_loop().time() - before >= 3 * RESUME_INTERVAL
