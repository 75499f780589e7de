"""A4: what is expected, what has started, what is missing."""

from typing import Any

import pytest

from jobset_gate.barrier import count
from jobset_gate.barrier.decision import Wait
from jobset_gate.barrier.missing import MissingSlot, missing_by_reason
from jobset_gate.barrier.model import BarrierStage, Config, GangSnapshot, JobSeen, PendingReason, PodSeen
from jobset_gate.explain.gang import explain_gang
from jobset_gate.sources.table import JOBSET
from tests.fakes.gangs import T0, decided, gang, job, jobset, missing_slots, pod, replicated_job, waiting_pod

pytestmark = pytest.mark.usefixtures("each_source")


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        ({"replicas": 3, "parallelism": 100, "completions": 100}, 300),
        ({"replicas": 3, "parallelism": 10, "completions": 100}, 30),
        ({"replicas": 3, "parallelism": 100, "completions": 10}, 30),
        ({"replicas": 2, "parallelism": 4, "completions": None}, 8),
        ({"replicas": 0, "parallelism": 4, "completions": 4}, 0),
    ],
)
def test_expected_is_replicas_times_the_smaller_of_parallelism_and_completions(
    spec: dict[str, Any], expected: int
) -> None:
    assert count.count_gang(gang(workload=jobset(replicated_job(**spec)))).expected == expected


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"stage": BarrierStage.WAITING}, False),
        ({"workload_uid": "another life"}, False),
        ({"workload_uid": ""}, False),
        ({"attempt": 1}, False),
        ({"epoch": 3}, True),
        ({"job_uid": "the Job that this one replaced"}, False),
        ({"replicated_job": "unrelated"}, False),
        ({"job_index": 1}, False),
        ({"index": 2}, False),
        ({"index": None}, False),
    ],
)
def test_a_pod_counts_when_its_barrier_runs_or_passed_and_it_is_a_living_member(
    changes: dict[str, Any], counts: bool
) -> None:
    assert count.count_gang(gang(pod(**({"index": 0} | changes)))).started == int(counts)


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({}, True),
        ({"bound": False}, False),
        ({"deleting": True}, False),
        ({"stage": BarrierStage.FAILED}, False),
        ({"workload_uid": "another life"}, False),
        ({"uid": "not announced"}, False),
    ],
)
def test_an_announced_pod_counts_when_it_is_a_living_member_on_a_node(changes: dict[str, Any], counts: bool) -> None:
    """The stream tells of its barrier before its kubelet does (A6)."""
    seen = gang(waiting_pod(0, **changes), announced={"pod-workers-0-0": T0})
    assert count.count_gang(seen).started == int(counts)
    assert len(list(missing_slots(seen))) == 2 - int(counts)


def test_the_first_and_the_last_start_may_be_announcements() -> None:
    announced = {"pod-workers-0-0": T0 + 2.5, "pod-workers-0-1": T0 - 7}
    tally = count.count_gang(gang(waiting_pod(0), pod(1, barrier_since=T0), announced=announced))
    assert (tally.first_announced, tally.first_start, tally.last_start) == (T0 + 2.5, T0, T0 + 2.5), (
        "once the status has a time, that one counts"
    )


BOTH = (pod(0), pod(1))
ANNOUNCED = {"pod-workers-0-0": T0}
PASSED: dict[str, Any] = {"phase": "Succeeded", "stage": BarrierStage.PASSED}
ONE = jobset(replicated_job(parallelism=1, completions=1))
TWO_JOBS = jobset(replicated_job(replicas=2, parallelism=1, completions=1))
TWO_UNNUMBERED = jobset(replicated_job(replicas=2, parallelism=1, completions=1, indexed=False))
FOUR_OF_TEN = jobset(replicated_job(parallelism=4, completions=10))
FORTY = jobset(replicated_job(parallelism=40, completions=40))
WORK_QUEUE = jobset(replicated_job(parallelism=2, completions=None, indexed=False))
TARGETS = jobset(replicated_job(), replicated_job("auxiliary"), config=Config(targets=("workers",)))


def numbered(*indexes: int) -> JobSeen:
    return job(completed=frozenset(indexes))


def without_index(*names: str) -> tuple[PodSeen, ...]:
    return tuple(pod(None, name=name, uid=name) for name in names)


COUNTS = {
    "the named targets": (gang(pod(0), pod(0, "auxiliary"), workload=TARGETS, jobs=(job(), job("auxiliary"))), 1, 2),
    "two pods of one slot": (gang(pod(0, name="old", uid="old"), pod(0)), 1, 2),
    "no JobSet's UID": (gang(pod(0, workload_uid=""), workload=jobset(uid="")), 0, 2),
    "a suspended JobSet": (gang(*BOTH, workload=jobset(suspended=True)), 0, 2),
    "a suspended Job": (gang(*BOTH, jobs=(job(suspended=True),)), 0, 2),
    "a missing Job": (gang(*BOTH, jobs=()), 0, 2),
    "a Job on its way out": (gang(*BOTH, jobs=(job(deleting=True),)), 0, 2),
    "announced, JobSet suspended": (gang(waiting_pod(0), workload=jobset(suspended=True), announced=ANNOUNCED), 0, 2),
    "announced, Job suspended": (gang(waiting_pod(0), jobs=(job(suspended=True),), announced=ANNOUNCED), 0, 2),
    "a completed index": (gang(pod(1, epoch=1), jobs=(numbered(0),)), 2, 2),
    "a pod of a completed index": (gang(pod(0, **PASSED), jobs=(numbered(0),)), 1, 2),
    "a completed index that an elastic Job no longer has": (gang(pod(0), jobs=(numbered(2),)), 1, 2),
    "a Complete Job": (gang(workload=TWO_JOBS, jobs=(job(complete=True), job(number=1))), 1, 2),
    # JobSet resumes active Jobs only: this one stays suspended for good.
    "a Job that became Complete while suspended": (
        gang(pod(0, job_index=1), workload=TWO_JOBS, jobs=(job(suspended=True, complete=True), job(job_index=1))),
        2,
        2,
    ),
    # Four at a time out of ten: after four are done, the next four have to start.
    "four of ten are done": (gang(workload=FOUR_OF_TEN, jobs=(numbered(*range(4)),)), 0, 4),
    "the next four": (gang(*map(pod, range(4, 8)), workload=FOUR_OF_TEN, jobs=(numbered(*range(4)),)), 4, 4),
    "the last two": (gang(pod(8), pod(9), workload=FOUR_OF_TEN, jobs=(numbered(*range(8)),)), 4, 4),
    # Without completions no pod takes the place of one that succeeded.
    "a work queue": (
        gang(pod(None, name="a", **PASSED), *without_index("b"), workload=WORK_QUEUE, jobs=(job(succeeded=1),)),
        2,
        2,
    ),
    "more pods than a NonIndexed Job runs": (
        gang(*without_index("a", "b"), workload=TWO_UNNUMBERED, jobs=(job(), job(number=1))),
        1,
        2,
    ),
    "parallelism raised": (gang(*BOTH, workload=jobset(replicated_job(parallelism=3, completions=3))), 2, 3),
    "parallelism lowered": (gang(*BOTH, workload=ONE), 1, 1),
    "a pod beyond a lowered parallelism": (gang(pod(1), workload=ONE), 0, 1),
}


@pytest.mark.parametrize(("seen", "started", "expected"), COUNTS.values(), ids=COUNTS)
def test_started_expected_and_missing_slots(seen: GangSnapshot, started: int, expected: int) -> None:
    tally = count.count_gang(seen)
    assert (tally.started, tally.expected, tally.complete) == (started, expected, started == expected)
    assert len(list(missing_slots(seen))) == expected - started


FAILED: dict[str, tuple[GangSnapshot, int, int]] = {
    "one of two": (gang(pod(0), jobs=(job(failed=frozenset({1})),)), 1, 1),
    "one whose pod a late watch still shows as started": (gang(*BOTH, jobs=(job(failed=frozenset({1})),)), 1, 1),
    "one that has completed": (gang(pod(0), jobs=(job(failed=frozenset({1}), completed=frozenset({1})),)), 2, 0),
    "one that an elastic Job no longer has": (gang(pod(0), jobs=(job(failed=frozenset({2})),)), 1, 0),
    "of a Complete Job": (gang(jobs=(job(failed=frozenset({1}), complete=True),)), 2, 0),
    "while others can take its place": (gang(pod(1), workload=FOUR_OF_TEN, jobs=(job(failed=frozenset({0})),)), 1, 0),
    "more than are named": (
        gang(*map(pod, range(10)), workload=FORTY, jobs=(job(failed=frozenset(range(20, 40))),)),
        10,
        20,
    ),
    "with too few others": (gang(pod(9), workload=FOUR_OF_TEN, jobs=(job(failed=frozenset(range(8))),)), 1, 2),
}


@pytest.mark.parametrize(("seen", "started", "failed"), FAILED.values(), ids=FAILED)
def test_a_slot_has_failed_when_its_index_has_and_no_other_can_take_its_place(
    seen: GangSnapshot, started: int, failed: int
) -> None:
    slots = tuple(count.list_job_slots(seen))
    tally = count.count_gang(seen, slots)
    assert (tally.started, sum(it.failed_count for it in slots)) == (started, failed)
    missing = list(missing_slots(seen))
    assert len(missing) == tally.expected - tally.started
    assert sum(it.cause.reason is PendingReason.INDEX_FAILED for it in missing) == failed
    assert sum(it.count for it in missing_by_reason(seen)) == len(missing)


@pytest.mark.parametrize("counted_by_its_job", [0, 1])
def test_a_nonindexed_pod_that_succeeded_is_counted_once_whether_or_not_its_job_counts_it(
    counted_by_its_job: int,
) -> None:
    """One of two has succeeded; after a resume the other is created again and has not started."""
    spec = jobset(replicated_job(parallelism=2, completions=2, indexed=False))
    done = pod(None, name="done", uid="done", **PASSED)
    late: dict[str, Any] = {"name": "late", "uid": "late", "epoch": 1}
    waits, runs = (
        count.count_gang(gang(done, other, workload=spec, jobs=(job(succeeded=counted_by_its_job),)))
        for other in (waiting_pod(None, **late), pod(None, **late))
    )
    assert (waits.started, waits.expected) == (1, 2)
    assert (runs.complete, runs.epoch) == (True, 1)


def slots(found: list[MissingSlot]) -> list[tuple[str, PendingReason]]:
    return [(one.slot(JOBSET), one.cause.reason) for one in found]


def test_a_replacement_is_named_rather_than_what_it_replaces() -> None:
    leaving = waiting_pod(0, PendingReason.TERMINATING, deleting=True, name="old", uid="old")
    seen = gang(leaving, waiting_pod(0, PendingReason.UNSCHEDULED), pod(1))
    assert slots(list(missing_slots(seen))) == [("workers-0/0", PendingReason.UNSCHEDULED)]


def test_nonindexed_pods_are_missing_without_a_number() -> None:
    spec = jobset(replicated_job(parallelism=2, completions=2, indexed=False))
    seen = gang(waiting_pod(None, name="a", uid="a"), workload=spec)
    assert slots(list(missing_slots(seen))) == [
        ("workers-0", PendingReason.UNSCHEDULED),
        ("workers-0", PendingReason.NOT_CREATED),
    ]


# --- A JobSet of two billion Jobs -------------------------------------------------------------------------------------

MANY = 2**31 - 1
"""The largest number of replicas there is: a client that goes through them one by one never comes back."""


@pytest.mark.parametrize("indexed", [True, False])
@pytest.mark.parametrize(("jobs", "pods"), [(MANY, 1), (1, MANY)], ids=["jobs", "pods"])
def test_a_gang_of_two_billion_is_counted_and_explained_at_once(jobs: int, pods: int, indexed: bool) -> None:
    target = replicated_job(replicas=jobs, parallelism=pods, completions=pods, indexed=indexed)
    seen = gang(workload=jobset(target), jobs=(job(),))
    decision = decided(Wait, seen, T0)
    assert (decision.started, decision.expected, decision.missing_count) == (0, MANY, MANY)
    assert sum(it.count for it in decision.missing) == MANY
    assert explain_gang(seen, T0).expected == MANY


def test_jobs_of_the_highest_numbers_are_counted_with_those_that_are_missing() -> None:
    seen = gang(
        workload=jobset(replicated_job(replicas=MANY, parallelism=1, completions=1)),
        jobs=(job(number=5), job(number=MANY - 1), job(number=MANY)),
        pods=(pod(0, number=5), pod(0, number=MANY - 1), pod(0, number=MANY)),
    )
    tally = count.count_gang(seen)
    assert (tally.started, tally.expected) == (2, MANY)
