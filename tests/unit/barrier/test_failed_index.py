"""A7: what is decided about a gang with an index that has failed for good."""

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.barrier.decide import decide
from jobset_gate.barrier.decision import Decide, Wait
from jobset_gate.barrier.model import Config, GangSnapshot, PendingReason, PodSeen, VerdictKind
from tests.fakes.gangs import (
    NOW,
    T0,
    clock,
    config_map,
    decided,
    gang,
    job,
    jobset,
    pod,
    replicated_job,
    slot,
    waiting_pod,
)

pytestmark = pytest.mark.usefixtures("each_source")

OLD = jobset(created=T0 - 900)
LOST = (job(failed=frozenset({1})),)
WITHOUT_TIMEOUT = jobset(config=Config())


def last() -> PodSeen:
    """The pod of the index that has failed."""
    return waiting_pod(1, PendingReason.NOT_CREATED, "its pod failed: fetch: exit code 3", phase="Failed")


def test_a_gang_with_an_index_that_has_failed_for_good_ends_at_once_and_names_it() -> None:
    decision = decided(Decide, gang(pod(0), last(), workload=jobset(config=Config()), jobs=LOST))
    assert (decision.verdict.kind, decision.verdict.cause) == (VerdictKind.TIMEOUT, "IndexFailed")
    assert decision.verdict.message == (
        "ended, since an index has failed for good: 1/2 pods started; "
        f"missing: 1 pod: IndexFailed: its pod failed: fetch: exit code 3 ({slot(1)})"
    )
    assert decision.condition.reason == names.REASON_INDEX_FAILED


def test_failed_indexes_are_named_before_pods_that_wait_longer_and_each_in_its_own_words() -> None:
    wide = jobset(replicated_job(parallelism=20, completions=20))
    failed = tuple(
        waiting_pod(n, PendingReason.NOT_CREATED, f"its pod failed: {why}", phase="Failed")
        for n, why in enumerate(("Evicted", "exit code 3"))
    )
    old = (waiting_pod(n, created=T0 - 900) for n in range(5, 20))
    decision = decided(Decide, gang(*failed, *old, workload=wide, jobs=(job(failed=frozenset(range(5))),)))
    assert f"; missing: 1 pod: IndexFailed: its pod failed: Evicted ({slot(0)}); " in decision.verdict.message
    assert f"1 pod: IndexFailed: its pod failed: exit code 3 ({slot(1)}); " in decision.verdict.message
    assert f"3 pods: IndexFailed: its pods are gone ({slot(2)}, {slot(3)}, {slot(4)}); 15 pods: Unscheduled" in (
        decision.verdict.message
    )


def test_a_failed_index_is_not_explained_by_a_pod_of_a_job_that_was_there_before() -> None:
    decision = decided(Decide, gang(pod(0), msgspec.structs.replace(last(), job_uid="before"), jobs=LOST))
    assert decision.verdict.message.endswith(f"missing: 1 pod: IndexFailed: its pods are gone ({slot(1)})")


@pytest.mark.parametrize(
    ("seen", "cause"),
    [
        (gang(workload=WITHOUT_TIMEOUT, jobs=LOST, config_map=None), "IndexFailed"),
        (gang(pod(0), workload=OLD, jobs=LOST, config_map=config_map(waiting_since=clock(T0 - 600))), "IndexFailed"),
        (gang(pod(0), workload=jobset(bypass=True), jobs=LOST), "Bypassed"),
        (gang(pod(0), jobs=(job(failed=frozenset({1}), completed=frozenset({1})),)), "AllPodsStarted"),
    ],
    ids=["before any pod", "when time is up, too", "with a bypass", "of a slot that needs none"],
)
def test_which_verdict_a_failed_index_brings(seen: GangSnapshot, cause: str) -> None:
    decision = decided(Decide, seen)
    assert decision.verdict.cause == cause


@pytest.mark.parametrize(
    "seen",
    [
        gang(pod(0), workload=jobset(suspended=True), jobs=LOST),
        gang(pod(0), jobs=(job(failed=frozenset({1}), deleting=True), job(number=1))),
        gang(pod(0), jobs=(job(failed=frozenset({1}), attempt=1),)),
        gang(pod(0), jobs=LOST, config_map=config_map(waiting_since=clock(attempt=1))),
    ],
    ids=["suspended", "a Job that is replaced", "another attempt's", "a JobSet whose restart is not seen yet"],
)
def test_a_gang_waits_on_with_a_failed_index(seen: GangSnapshot) -> None:
    assert isinstance(decide(seen, NOW), Wait)
