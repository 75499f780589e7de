"""The oracle reads the contract right: what fills a slot, and which pods a verdict binds (A4, A5)."""

from __future__ import annotations

from typing import Any

import pytest

from tests.stress.world import facts
from tests.stress.world.facts import Json, RawGeneration, RawVerdict
from tests.stress.world.objects import replicated_job

UID = "u-1"


def jobset(mode: str = "Indexed", *, width: int = 2, replicas: int = 1, **spec: Any) -> Json:
    jobs = [replicated_job("workers", replicas, width, mode)]
    whole = {"suspend": False, "replicatedJobs": jobs} | spec
    return {"metadata": {"uid": UID}, "spec": whole, "status": {"restarts": 0}}


def labels(number: int = 0, attempt: int = 0) -> Json:
    return {
        facts.UID: UID,
        facts.ATTEMPT: str(attempt),
        facts.REPLICATED_JOB: "workers",
        facts.JOB_INDEX: str(number),
    }


def job(number: int = 0, *, attempt: int = 0, suspend: bool = False, complete: bool = False, **status: Any) -> Json:
    if complete:
        status["conditions"] = [{"type": "Complete", "status": "True"}]
    meta = {"name": f"job-{number}", "uid": f"job-{number}", "labels": labels(number, attempt)}
    return {"metadata": meta, "spec": {"suspend": suspend}, "status": status}


def pod(index: int, number: int = 0, *, state: Json | None = None, epoch: int = 0, **more: Any) -> Json:
    meta = {
        "uid": f"pod-{number}-{index}",
        "labels": labels(number),
        "annotations": {facts.INDEX: str(index), facts.EPOCH: str(epoch)},
        "ownerReferences": [{"uid": f"job-{number}", "controller": True}],
    }
    runs = {"running": {"startedAt": "2026-01-01T00:00:00Z"}} if state is None else state
    made: Json = {
        "metadata": meta | more.pop("meta", {}),
        "spec": {"nodeName": "node"},
        "status": {"phase": "Pending", "initContainerStatuses": [{"name": facts.BARRIER, "state": runs}]},
    }
    made["status"] |= more.pop("status", {})
    return made | more


EXITED = {"terminated": {"exitCode": 0}}
FAILED = {"terminated": {"exitCode": 124}}


@pytest.mark.parametrize(
    ("jobs", "pods", "missing"),
    [
        ([job()], [pod(0), pod(1)], 0),
        ([job()], [pod(0)], 1),
        ([], [pod(0), pod(1)], 1),
        ([job()], [pod(0), pod(0)], 1),
        ([job()], [pod(0), pod(1, state=EXITED)], 0),
        ([job()], [pod(0), pod(1, state=FAILED)], 1),
        ([job()], [pod(0), pod(1, state={})], 1),
        ([job()], [pod(0), pod(1, meta={"deletionTimestamp": "now"})], 1),
        ([job()], [pod(0), pod(1, status={"phase": "Failed"})], 1),
        ([job()], [pod(0), pod(1, state=EXITED, status={"phase": "Succeeded"})], 0),
        ([job()], [pod(0), pod(1, meta={"ownerReferences": []})], 1),
        ([job(completedIndexes="1")], [pod(0)], 0),
        ([job(complete=True)], [], 0),
        ([job(suspend=True, complete=True)], [], 0),
        ([job(suspend=True)], [pod(0), pod(1)], 1),
        ([job(attempt=1)], [pod(0), pod(1)], 1),
    ],
)
def test_a_slot_is_filled_by_what_has_started_or_has_finished(jobs: list[Json], pods: list[Json], missing: int) -> None:
    lacking = facts.lacking(jobset(), jobs, pods, ())
    assert lacking is not None
    assert (len(lacking) > 0) is (missing > 0), lacking


def test_an_index_that_has_failed_is_filled_by_nobody_and_lost_unless_another_can_take_its_place() -> None:
    both = [pod(0), pod(1)]
    assert facts.lacking(jobset(), [job(failedIndexes="1")], both, ()) == ["workers-0/1"]
    assert facts.lost(jobset(), [job(failedIndexes="0-1")]) == ["workers-0/0", "workers-0/1"]
    assert facts.lost(jobset(), [job(failedIndexes="1", completedIndexes="1")]) == []
    assert facts.lost(jobset(), [job(failedIndexes="2")]) == []
    assert facts.lost(jobset(), [job(failedIndexes="1", attempt=1)]) == []
    assert facts.lost(jobset(suspend=True), [job(failedIndexes="1")]) == []
    wide = jobset(width=3)
    wide["spec"]["replicatedJobs"][0]["template"]["spec"]["parallelism"] = 2
    assert facts.lost(wide, [job(failedIndexes="0")]) == []
    assert facts.lost(wide, [job(failedIndexes="0-1")]) == ["workers-0/0"]


def test_a_complete_job_with_another_that_waits_is_satisfied() -> None:
    both = [job(0, suspend=True, complete=True), job(1)]
    assert facts.lacking(jobset(replicas=2), both, [pod(0, 1), pod(1, 1)], ()) == []
    assert facts.lacking(jobset(replicas=2), both, [pod(0, 1)], ()) == ["workers-1/1"]


def test_an_announcement_counts_for_a_pod_on_a_node() -> None:
    waits = pod(1, state={})
    assert facts.lacking(jobset(), [job()], [pod(0), waits], {"pod-0-1"}) == []
    unbound = {**waits, "spec": {}}
    assert facts.lacking(jobset(), [job()], [pod(0), unbound], {"pod-0-1"}) == ["workers-0/1"]


def test_nothing_counts_while_the_jobset_is_suspended_or_gone() -> None:
    assert facts.lacking(jobset(suspend=True), [job()], [pod(0), pod(1)], ()) is None
    assert facts.lacking(None, [job()], [pod(0), pod(1)], ()) is None


def test_of_a_nonindexed_job_what_has_succeeded_needs_no_pod_and_fills_no_other_slot() -> None:
    over = pod(0, state=EXITED, status={"phase": "Succeeded"})
    assert facts.lacking(jobset("NonIndexed"), [job(succeeded=1)], [over], ()) == ["workers-0/one of 1"]
    assert facts.lacking(jobset("NonIndexed"), [job(succeeded=1)], [over, pod(1)], ()) == []
    assert facts.lacking(jobset("NonIndexed"), [job()], [over, pod(1)], ()) == []


def test_a_verdict_binds_its_own_life_and_attempt_up_to_its_epoch() -> None:
    said = facts.parse_verdict("release u-1 2 3 AllPodsStarted\nall 2 pods started\n")
    assert said == RawVerdict("release", RawGeneration("u-1", 2, 3), "AllPodsStarted")
    binds = [RawGeneration("u-1", 2, 3), RawGeneration("u-1", 2, 0)]
    others = [RawGeneration("u-1", 2, 4), RawGeneration("u-1", 1, 3), RawGeneration("u-2", 2, 3)]
    assert [said.binds(one) for one in (*binds, *others)] == [True, True, False, False, False]
    assert facts.parse_verdict("release me") is None
    assert facts.parse_verdict("") is None
