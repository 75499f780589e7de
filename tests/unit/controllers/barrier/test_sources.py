"""Gangs of two sources side by side: what belongs to the one, or only says so, has no say in the other (K1, A10)."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from controllers.barrier.cache import GangCache
from controllers.barrier.live_reader import LiveReader
from jobset_gate.barrier import integrity, wire
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Decide, Wait
from jobset_gate.barrier.model import GangKey, GangSnapshot
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.sources import decode
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.wire_objects import BARRIER, JOB_UID, TEN_O_CLOCK, Json, bare_job, bare_job_pod, owner, pod, status

JOB_RUN = GangKey("team-a", "run", "job")
JOBSET_RUN = GangKey("team-a", "run", "jobset")
NOW = TEN_O_CLOCK + 60
RUNS = status(BARRIER, running="2026-08-01T10:00:30Z")


def started(index: int, **meta: Any) -> Json:
    """A pod of the Job whose barrier runs."""
    return bare_job_pod(index, RUNS, meta=meta)


def jobset(name: str = "run", uid: str = "jobset-uid") -> Json:
    """A JobSet of one Job of two pods."""
    spec = bare_job(parallelism=2, completions=2)["spec"]
    workers = {"name": "workers", "replicas": 1, "template": {"spec": spec}}
    meta = {"name": name, "namespace": "team-a", "uid": uid, "creationTimestamp": "2026-08-01T10:00:00Z"}
    return {"metadata": meta, "spec": {"groupSchedulingConfig": {}, "replicatedJobs": [workers]}}


def jobset_labels(uid: str = "jobset-uid") -> Json:
    return {
        "jobset-gate.dev/gated": "true",
        "jobset.sigs.k8s.io/jobset-name": "run",
        "jobset.sigs.k8s.io/jobset-uid": uid,
        "jobset.sigs.k8s.io/replicatedjob-name": "workers",
        "jobset.sigs.k8s.io/job-index": "0",
        "jobset.sigs.k8s.io/restart-attempt": "0",
    }


def config_map(name: str, uid: str, verdict: str) -> Json:
    meta = {
        "name": name,
        "namespace": "team-a",
        "uid": f"uid of {name}",
        "resourceVersion": "5",
        "labels": {"jobset-gate.dev/gate": "true"},
        "annotations": {"jobset-gate.dev/jobset-uid": uid},
        "ownerReferences": [{"kind": "Job", "name": "run", "uid": uid}],
    }
    return {"metadata": meta, "data": {"verdict": verdict}}


class Watched:
    """A cache that was shown these objects."""

    def __init__(self) -> None:
        self.cache = GangCache(lambda _: None, lambda _, __: None)

    def show(self, *bodies: Json) -> None:
        for body in bodies:
            key = body["metadata"]["namespace"], body["metadata"]["name"]
            spec = body.get("spec", {})
            if "data" in body:
                self._show(body, wire.ConfigMap, decode.config_map, self.cache.on_config_map, key)
            elif "replicatedJobs" in spec:
                self._show(body, wire.JobSet, decode.jobset, self.cache.on_workload, key)
            elif "completionMode" in spec:
                self._show(body, wire.Job, decode.job, self.cache.on_job, key)
            else:
                self._show(body, wire.Pod, decode.pod, self.cache.on_pod, key)

    def _show(self, body: Json, shape: Any, read: Any, handler: Any, key: tuple[str, str]) -> None:
        handler(ObjectChange(key, None, read(msgspec.json.decode(msgspec.json.encode(body), type=shape))))

    def seen(self, key: GangKey = JOB_RUN) -> GangSnapshot:
        found = self.cache.snapshot(key)
        assert found is not None
        return found


@pytest.fixture
def watched() -> Watched:
    """A Job of two pods: the first has started."""
    made = Watched()
    made.show(bare_job(parallelism=2, completions=2), started(0))
    return made


def progress(seen: GangSnapshot) -> tuple[int, int]:
    """(started, expected) of a gang that waits."""
    decision = decide(seen, NOW)
    assert isinstance(decision, Wait), decision
    return decision.started, decision.expected


UNRELATED: dict[str, Json] = {
    "without an owner": started(1, ownerReferences=[]),
    "of an owner that is no controller": started(
        1, ownerReferences=[owner("Job", "run", JOB_UID) | {"controller": False}]
    ),
    "of an earlier Job of that name": started(1, ownerReferences=[owner("Job", "run", "earlier-uid")]),
    "of a Job of another name": started(1, ownerReferences=[owner("Job", "other", JOB_UID)]),
    "in another namespace": started(1, namespace="team-b"),
    "that says it is a JobSet's": started(1, labels=jobset_labels(JOB_UID)),
    "that has only the labels of the Job's": started(1, ownerReferences=[owner("Job", "other", "other-uid")]),
    "of an index that the Job has not": started(7),
    "of the index that has started": started(0, uid="pod-again", name="run-0-again"),
}


@pytest.mark.parametrize("name", UNRELATED)
def test_a_pod_that_is_not_the_jobs_opens_no_gate(watched: Watched, name: str) -> None:
    watched.show(UNRELATED[name])
    assert progress(watched.seen()) == (1, 2)


def test_a_pod_and_a_job_of_the_source_job_are_in_no_jobsets_gang(watched: Watched) -> None:
    """Whatever their labels and references say of the JobSet."""
    claims = jobset_labels() | {"jobset-gate.dev/gated": "job"}
    forged = bare_job(parallelism=2, completions=2)
    forged["metadata"] |= {
        "name": "forged",
        "labels": claims,
        "ownerReferences": [owner("JobSet", "run", "jobset-uid")],
    }
    pods = [pod(RUNS, labels=claims, meta={"name": f"p{it}", "uid": f"p{it}"}) for it in range(2)]
    watched.show(jobset(), forged, *pods)
    assert progress(watched.seen(JOBSET_RUN)) == (0, 2)


def test_a_job_that_claims_a_jobset_without_its_reference_is_not_in_the_gang(watched: Watched) -> None:
    claiming = bare_job(parallelism=2, completions=2, meta={"name": "claims", "uid": "claims"})
    claiming["metadata"] |= {"namespace": "team-a", "labels": jobset_labels(), "ownerReferences": []}
    pods = [
        started(
            it, name=f"c{it}", uid=f"c{it}", labels=jobset_labels(), ownerReferences=[owner("Job", "claims", "claims")]
        )
        for it in range(2)
    ]
    watched.show(jobset(), claiming, *pods)
    assert progress(watched.seen(JOBSET_RUN)) == (0, 2)


HAND_MADE: dict[str, Json] = {
    "for another UID": config_map("run.job.group-scheduling", "other", "release other 0 2 AllPodsStarted\n"),
    "with a verdict on another UID": config_map(
        "run.job.group-scheduling", JOB_UID, "release other 0 2 AllPodsStarted\n"
    ),
    "of the other source": config_map("run-group-scheduling", JOB_UID, f"release {JOB_UID} 0 2 AllPodsStarted\n"),
    "of an attempt that a Job has not": config_map(
        "run.job.group-scheduling", JOB_UID, f"release {JOB_UID} 1 2 AllPodsStarted\n"
    ),
    "of an epoch to come": config_map("run.job.group-scheduling", JOB_UID, f"release {JOB_UID} 0 3 AllPodsStarted\n"),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_config_map_made_by_hand_opens_no_gate(watched: Watched, name: str) -> None:
    watched.show(HAND_MADE[name])
    seen = watched.seen()
    verified = integrity.without_edits(seen, seen.workload) if integrity.needs_verification(seen) else seen
    assert progress(verified) == (1, 2)
    assert watched.cache.get_verdict(JOB_RUN) is None, "it is delivered to no pod"


# --- Live reads ------------------------------------------------------------------------------------------------------


async def test_before_a_verdict_the_job_and_its_pods_are_read(watched: Watched, api: Api, memory: MemoryClient) -> None:
    seen = watched.seen()
    api.put(JOBS, bare_job(parallelism=2, completions=2))
    for body in (started(0), started(1), UNRELATED["of an earlier Job of that name"] | {"metadata": {"name": "x"}}):
        api.put(PODS, body | {"metadata": body["metadata"] | {"namespace": "team-a"}})
    live = await LiveReader(memory.client).refresh(seen, reasons=False)
    assert isinstance(decide(live, NOW), Decide)
    assert {it.name for it in live.pods} == {"run-0-x7k2p", "run-1-x7k2p"}
    assert [it.uid for it in live.jobs] == [JOB_UID]


@pytest.mark.parametrize("uid", [None, "another"])
async def test_a_job_that_is_gone_or_another_one_starts_no_gang(
    watched: Watched, api: Api, memory: MemoryClient, uid: str | None
) -> None:
    watched.show(started(1))
    if uid is not None:
        api.put(JOBS, bare_job(parallelism=2, completions=2, meta={"name": "run", "namespace": "team-a", "uid": uid}))
    for index in range(2):
        api.put(PODS, started(index))
    live = await LiveReader(memory.client).refresh(watched.seen(), reasons=False)
    assert progress(live) == (0, 2)
