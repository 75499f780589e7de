"""An Indexed Job with the annotation is a gang: workload and Job in one, whose pods it owns (K1, K4)."""

from typing import Any

import pytest

from jobset_gate.barrier.model import Config, WorkloadSeen
from jobset_gate.sources.table import JOB
from tests.fakes.present import present
from tests.fakes.wire_objects import JOB_UID, Json, bare_job, bare_job_pod, owner, read_config_map, read_job, read_pod

CONFIG = "jobset-gate.dev/group-scheduling-config"


def workload(body: Json) -> WorkloadSeen:
    return present(read_job(body).workload)


def test_a_job_is_workload_and_only_job_of_its_gang() -> None:
    seen = read_job(bare_job())
    gang = present(seen.workload)
    assert (gang.source, str(gang.key), gang.uid, gang.attempt, gang.epoch) == (JOB, "team-a/run", JOB_UID, 0, 2)
    assert (gang.config, gang.token) == (Config(timeout=300), "t0k-en_22")
    (only,) = gang.targets
    assert (only.expected, only.indexed, only.has_barrier, only.devices) == (8, True, True, (("nvidia.com/gpu", 4),))
    slot = (seen.source, seen.gang, seen.workload_uid, seen.replicated_job, seen.job_index, seen.attempt)
    assert slot == ("job", "run", JOB_UID, only.name, 0, gang.attempt)


def test_parallelism_lowered_by_partial_admission_is_the_number_that_must_start() -> None:
    assert workload(bare_job(parallelism=3)).targets[0].expected == 3
    assert workload(bare_job(parallelism=None, completions=None)).targets[0].expected == 1


@pytest.mark.parametrize("meta", [{"annotations": {}}, {"labels": {}}, {"labels": {"jobset-gate.dev/gated": "true"}}])
def test_a_job_without_the_annotation_or_its_label_is_no_gang(meta: Json) -> None:
    """The label is missing where the webhook was away; one of a JobSet is another."""
    assert read_job(bare_job(meta=meta)).workload is None


def test_a_wrong_config_is_reported_and_not_believed() -> None:
    seen = workload(bare_job(meta={"annotations": {CONFIG: '{"timeoutAfterSeconds": 0}'}}))
    assert seen.config == Config()
    assert "timeoutAfterSeconds" in seen.config_problem


def test_the_other_annotations_are_those_of_a_jobset() -> None:
    notes = {CONFIG: "{}", "jobset-gate.dev/bypass": "true", "jobset-gate.dev/on-timeout": "Release"}
    seen = workload(bare_job(meta={"annotations": notes}))
    assert (seen.config, seen.bypass, seen.releases_on_timeout) == (Config(), True, True)


@pytest.mark.parametrize(
    ("kind", "failed"), [("Complete", False), ("SuccessCriteriaMet", False), ("Failed", True), ("FailureTarget", True)]
)
def test_a_job_that_ends_is_finished_before_its_last_pod_is_gone(kind: str, failed: bool) -> None:
    ended = [{"type": kind, "status": "True", "reason": "X", "message": "it is over"}]
    seen = workload(bare_job(status={"conditions": ended}))
    assert (seen.finished, seen.failed, seen.finished_message) == (True, failed, "it is over")
    assert not workload(bare_job(status={"conditions": [ended[0] | {"status": "False"}]})).finished


def test_a_job_of_another_controller_is_left_to_it() -> None:
    assert workload(bare_job(managedBy="kueue.x-k8s.io/multikueue")).managed_elsewhere
    assert not workload(bare_job(managedBy="kubernetes.io/job-controller")).managed_elsewhere


SUSPENDED = {"type": "Suspended", "status": "True"}
STALE: dict[str, tuple[Json, bool]] = {
    "Kubernetes before 1.36": ({"startTime": "2026-08-01T10:00:00Z", "conditions": [SUSPENDED]}, True),
    "1.36: the Job controller has cleared it": ({"conditions": [SUSPENDED]}, False),
    "pods still run": ({"startTime": "2026-08-01T10:00:00Z", "active": 1, "conditions": [SUSPENDED]}, False),
    "not suspended by the Job controller yet": ({"startTime": "2026-08-01T10:00:00Z"}, False),
}


@pytest.mark.parametrize("name", STALE)
def test_a_stale_start_is_one_of_a_job_whose_suspension_is_done(name: str) -> None:
    status, stale = STALE[name]
    assert workload(bare_job(suspend=True, status=status)).stale_start == ("77" if stale else "")
    assert workload(bare_job(suspend=False, status=status)).stale_start == ""


def test_a_pod_belongs_to_the_job_that_owns_it() -> None:
    seen = read_pod(bare_job_pod(5))
    assert (seen.source, seen.gang, seen.workload_uid, seen.job_uid) == ("job", "run", JOB_UID, JOB_UID)
    assert (seen.replicated_job, seen.job_index, seen.index, seen.attempt, seen.epoch) == ("", 0, 5, 0, 2)


CLAIMS: Json = {
    "jobset-gate.dev/gated": "job",
    "jobset.sigs.k8s.io/jobset-name": "train",
    "jobset.sigs.k8s.io/jobset-uid": "jobset-uid",
    "jobset.sigs.k8s.io/replicatedjob-name": "workers",
    "jobset.sigs.k8s.io/job-index": "1",
    "jobset.sigs.k8s.io/restart-attempt": "3",
    "batch.kubernetes.io/controller-uid": "another-uid",
    "batch.kubernetes.io/job-name": "another",
}


def test_what_labels_claim_of_a_jobset_or_of_another_job_has_no_say() -> None:
    plain, claiming = read_pod(bare_job_pod()), read_pod(bare_job_pod(meta={"labels": CLAIMS}))
    assert claiming == plain


@pytest.mark.parametrize(
    "owners", [None, [], [owner("Job", "run", JOB_UID) | {"controller": False}]], ids=["none", "empty", "no controller"]
)
def test_a_pod_without_a_controller_belongs_to_no_gang(owners: list[Any] | None) -> None:
    seen = read_pod(bare_job_pod(meta={"ownerReferences": owners}))
    assert (seen.gang, seen.workload_uid, seen.job_uid) == ("", "", "")


@pytest.mark.parametrize(
    ("name", "source", "gang"),
    [
        ("run.job.group-scheduling", "job", "run"),
        ("run-group-scheduling", "jobset", "run"),
        ("run.job-group-scheduling", "jobset", "run.job"),
        ("run-group-scheduling.job.group-scheduling", "job", "run-group-scheduling"),
    ],
)
def test_a_config_map_is_of_the_source_that_its_name_ends_with(name: str, source: str, gang: str) -> None:
    body = {"metadata": {"name": name, "namespace": "team-a", "labels": {"jobset-gate.dev/gate": "true"}}}
    seen = present(read_config_map(body))
    assert (seen.source, seen.gang) == (source, gang)
