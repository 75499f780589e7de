"""From objects as an API server stores them to what the rules go by (A4, A5): pods and Jobs."""

from typing import Any

import msgspec
import pytest

from jobset_gate.barrier import wire
from jobset_gate.barrier.model import BarrierStage
from jobset_gate.sources.decode import MAX_INDEXES, parse_indexes, written_at
from jobset_gate.sources.jobset import NO_INDEX
from tests.fakes.wire_objects import BARRIER, TEN_O_CLOCK, Json, ended, owner, pod, read_job, read_pod, status

# --- Pods -----------------------------------------------------------------------------------------------------------


def test_a_pod_knows_its_place_and_its_generation() -> None:
    seen = read_pod(pod(status(BARRIER, waiting="PodInitializing")))
    assert (seen.namespace, seen.name, seen.uid) == ("team-a", "train-workers-2-17-x7k2p", "pod-uid")
    assert (seen.gang, seen.replicated_job, seen.job_index, seen.index) == ("train", "workers", 2, 17)
    assert (seen.workload_uid, seen.attempt, seen.epoch, seen.job_uid) == ("jobset-uid", 1, 3, "job-uid")
    assert (seen.created, seen.bound, seen.deleting, seen.started) == (TEN_O_CLOCK, True, False, False)


@pytest.mark.parametrize(
    ("times", "after"),
    [
        (["2026-08-01T10:00:00Z", "2026-08-01T10:00:31Z", "2026-08-01T10:00:05Z"], 31),
        (["2026-08-01T10:00:00Z", None], 0),
        (["0000-01-01T00:00:00Z"], None),
        (["soon"], None),
        ([], None),
        (None, None),
    ],
)
def test_a_pod_was_written_at_the_latest_date_of_its_managed_fields(
    times: list[str | None] | None, after: int | None
) -> None:
    """Users can write what they like there, and the pod must be decoded all the same."""
    entries = None if times is None else [{"manager": "m", "operation": "Update", "time": at} for at in times]
    decoded = msgspec.json.decode(msgspec.json.encode(pod(meta={"managedFields": entries})), type=wire.Pod)
    assert written_at(decoded) == (None if after is None else TEN_O_CLOCK + after)


def test_no_barrier_starts_before_its_pod_was_created_whatever_its_node_says() -> None:
    """The node's clock is an hour behind."""
    behind = pod(status(BARRIER, running="2026-08-01T09:00:30Z"), meta={"creationTimestamp": "2026-08-01T10:00:00Z"})
    assert read_pod(behind).barrier_since == TEN_O_CLOCK


RUNS = status(BARRIER, running="2026-08-01T10:00:30Z")
WAITS = status(BARRIER, waiting="PodInitializing")
PASSED = status(BARRIER, exit=0)
# An API server stores null for the time of a condition that has none.
UNDATED = {"conditions": [{"type": "PodScheduled", "status": "False", "lastTransitionTime": None}]}
STAGES: dict[str, tuple[Json, BarrierStage, bool]] = {
    "waiting": (pod(WAITS), BarrierStage.WAITING, False),
    "running": (pod(RUNS), BarrierStage.RUNNING, True),
    "passed": (pod(PASSED), BarrierStage.PASSED, True),
    "timed out": (pod(status(BARRIER, exit=124, reason="Error")), BarrierStage.FAILED, False),
    "timed out, and runs again": (
        pod(status(BARRIER, waiting="CrashLoopBackOff", last=ended(124))),
        BarrierStage.WAITING,
        False,
    ),
    "the start time of the pod, which is set before any image is pulled": (
        pod(status={"phase": "Running", "startTime": "2026-08-01T10:00:06Z", "initContainerStatuses": [WAITS]}),
        BarrierStage.WAITING,
        False,
    ),
    "a condition without a time": (pod(status={"initContainerStatuses": [RUNS]} | UNDATED), BarrierStage.RUNNING, True),
    "between native sidecars that run on": (
        pod(status("proxy", running="2026-08-01T10:00:20Z"), status("fetch", exit=0), RUNS),
        BarrierStage.RUNNING,
        True,
    ),
    "a namesake among the main containers": (
        pod(status={"initContainerStatuses": [WAITS], "containerStatuses": [RUNS]}),
        BarrierStage.WAITING,
        False,
    ),
    "terminating": (pod(RUNS, meta={"deletionTimestamp": "2026-08-01T10:05:00Z"}), BarrierStage.RUNNING, False),
    "failed": (pod(status={"phase": "Failed", "initContainerStatuses": [PASSED]}), BarrierStage.PASSED, False),
    "succeeded": (pod(status={"phase": "Succeeded", "initContainerStatuses": [PASSED]}), BarrierStage.PASSED, True),
    "a null state": (pod({"name": BARRIER, "state": None, "lastState": None}), BarrierStage.WAITING, False),
    "null in its state": (
        pod({"name": BARRIER, "state": {"running": None, "terminated": None, "waiting": None}}),
        BarrierStage.WAITING,
        False,
    ),
    "no time": (pod({"name": BARRIER, "state": {"running": {"startedAt": None}}}), BarrierStage.RUNNING, True),
}


@pytest.mark.parametrize(("body", "stage", "started"), STAGES.values(), ids=STAGES)
def test_a_pod_has_started_when_its_barrier_runs_or_has_passed(
    body: Json, stage: BarrierStage, *, started: bool
) -> None:
    seen = read_pod(body)
    assert (seen.stage, seen.started, seen.pending is None) == (stage, started, started)


def test_the_first_of_several_main_containers_tells_when_the_work_began() -> None:
    body = pod(PASSED)
    body["status"]["containerStatuses"] = [
        status("pytorch", running="2026-08-01T10:01:10Z"),
        status("metrics", running="2026-08-01T10:01:05Z"),
        status("logs", waiting="ContainerCreating"),
    ]
    assert read_pod(body).main_since == TEN_O_CLOCK + 65


@pytest.mark.parametrize(
    "owners", [None, [], [{"kind": "Job", "uid": "job-uid"}]], ids=["nobody", "none", "not its controller"]
)
def test_a_pod_with_the_labels_that_no_job_made_is_of_no_gang(owners: list[Json] | None) -> None:
    """A client that may create pods may write any labels; what counts is who made the pod."""
    seen = read_pod(pod(RUNS, meta={"ownerReferences": owners}))
    assert (seen.gang, seen.workload_uid, seen.job_uid) == ("train", "", "")


def test_a_pod_is_of_the_job_that_made_it_whatever_its_labels_say() -> None:
    owners = [owner("Job", "mine", "my-uid") | {"controller": False}, owner("Job", "other", "another-uid")]
    assert read_pod(pod(meta={"ownerReferences": owners})).job_uid == "another-uid"


@pytest.mark.parametrize("garbage", ["", "-1", "1.5", "x", "1e3", "٣", " 1", "1234567890", "0x10"])
def test_labels_that_hold_no_number_match_no_slot_and_no_attempt(garbage: str) -> None:
    labels = {"jobset.sigs.k8s.io/job-index": garbage, "jobset.sigs.k8s.io/restart-attempt": garbage}
    seen = read_pod(pod(RUNS, labels=labels, notes={"jobset-gate.dev/epoch": garbage}))
    assert (seen.job_index, seen.attempt, seen.epoch) == (NO_INDEX, NO_INDEX, 0)


@pytest.mark.parametrize("none", [None, {}])
def test_a_pod_without_labels_and_annotations_belongs_nowhere_and_does_no_harm(none: Json | None) -> None:
    seen = read_pod(pod(RUNS, meta={"labels": none, "annotations": none}))
    assert (seen.gang, seen.workload_uid, seen.attempt, seen.epoch, seen.index) == ("", "", NO_INDEX, 0, None)


def test_null_fields_and_absent_ones_are_the_same() -> None:
    """Typed clients write null where others write nothing."""
    body = pod()
    body["metadata"] |= {"deletionTimestamp": None, "creationTimestamp": None}
    body["status"] |= {"conditions": None, "initContainerStatuses": None, "containerStatuses": None}
    seen = read_pod(body)
    assert (seen.created, seen.deleting, seen.stage, seen.main_since) == (None, False, BarrierStage.WAITING, None)


# --- Jobs -----------------------------------------------------------------------------------------------------------


def job(**changes: Any) -> Json:
    return {
        "metadata": {
            "name": "train-workers-2",
            "namespace": "team-a",
            "uid": "job-uid",
            "labels": {
                "jobset.sigs.k8s.io/jobset-name": "train",
                "jobset.sigs.k8s.io/jobset-uid": "jobset-uid",
                "jobset.sigs.k8s.io/replicatedjob-name": "workers",
                "jobset.sigs.k8s.io/job-index": "2",
                "jobset.sigs.k8s.io/restart-attempt": "1",
            },
            "ownerReferences": [owner("JobSet", "train", "jobset-uid")],
        },
        "spec": {"suspend": False, "parallelism": 100, "completions": 100, "completionMode": "Indexed"},
        "status": {"active": 100, "ready": 0, "terminating": 0, "uncountedTerminatedPods": {}},
    } | changes


def test_a_job_knows_its_place_and_what_it_has_finished() -> None:
    seen = read_job(job())
    assert (seen.gang, seen.replicated_job, seen.job_index, seen.attempt) == ("train", "workers", 2, 1)
    assert seen.workload_uid == "jobset-uid"
    assert (seen.suspended, seen.deleting, seen.complete, seen.succeeded) == (False, False, False, 0)
    seen = read_job(job(status={"succeeded": 5, "completedIndexes": "0,2-4,9"}))
    assert (seen.succeeded, seen.completed) == (5, frozenset({0, 2, 3, 4, 9}))


@pytest.mark.parametrize(
    "owners",
    [None, [owner("JobSet", "train", "jobset-uid") | {"controller": False}], [owner("JobSet", "train", "another")]],
    ids=["nobody", "not its controller", "another JobSet"],
)
def test_a_job_with_the_labels_that_its_jobset_did_not_make_is_of_no_gang(owners: list[Json] | None) -> None:
    body = job()
    body["metadata"]["ownerReferences"] = owners
    assert read_job(body).workload_uid == ""


@pytest.mark.parametrize(
    ("ended", "failed"), [(None, {1, 4, 5}), ("Complete", {1, 4, 5}), ("FailureTarget", set()), ("Failed", set())]
)
def test_failed_indexes_are_read_of_a_job_that_has_not_failed_as_a_whole(ended: str | None, failed: set[int]) -> None:
    conditions = [{"type": ended, "status": "True"}] if ended else None
    assert read_job(job(status={"failedIndexes": "1,4-5", "conditions": conditions})).failed == failed


@pytest.mark.parametrize(
    ("conditions", "complete"),
    [
        ([{"type": "SuccessCriteriaMet", "status": "True"}], False),
        ([{"type": "Complete", "status": "True"}], True),
        ([{"type": "Complete", "status": "False"}], False),
        ([{"type": "Failed", "status": "True"}], False),
        (None, False),
    ],
)
def test_a_job_is_complete_when_its_condition_says_so(conditions: list[Json] | None, *, complete: bool) -> None:
    assert read_job(job(status={"conditions": conditions})).complete is complete


@pytest.mark.parametrize(
    ("text", "found"),
    [("", set()), ("1,3-5,7", {1, 3, 4, 5, 7}), ("5-3", set()), ("a-b,2", {2}), ("3-,4", {3, 4}), ("1-2-3,9", {9})],
)
def test_completed_indexes_are_expanded_and_garbage_in_them_left_out(text: str, found: set[int]) -> None:
    assert parse_indexes(text) == found


def test_a_hundred_thousand_completed_indexes_are_read_and_an_absurd_range_is_not() -> None:
    assert len(parse_indexes("0-99999")) == 100_000
    assert parse_indexes(f"0-{10 * MAX_INDEXES},3") == {3}
