"""A timeline is that of the present attempt, says what it leaves out, and takes no release for another's."""

from typing import Any

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.barrier.model import ConditionSeen, ConfigMapSeen, Generation, ReplicatedJobSeen, VerdictKind
from jobset_gate.timeline.gang import gang_timeline
from jobset_gate.timeline.model import PodTimeline, Timeline
from jobset_gate.timeline.summary import headline, sentences
from tests.fakes import gangs
from tests.fakes.timelines import T0, held, pod, through

AT_30 = "2027-01-15T08:00:30Z"
OPEN = gangs.config_map(verdict=gangs.verdict(), waiting_since=gangs.clock())


def shown(status: str = "True", reason: str = names.REASON_STARTED) -> ConditionSeen:
    return ConditionSeen(status=status, reason=reason, message="", since=AT_30)


def made(*pods: PodTimeline, gate: Any = None, job: ReplicatedJobSeen | None = None, **jobset: Any) -> Timeline:
    return gang_timeline(gangs.jobset(job or gangs.replicated_job(), **jobset), gate, pods, T0 + 60)


def test_the_timeline_of_a_job_is_called_after_it_and_numbers_its_pods() -> None:
    job = gangs.job_gang().workload
    it = gang_timeline(job, None, [held(0, job="", number=0), held(1, job="", number=0)], T0 + 60)
    assert headline(it).startswith("Job default/train: 2/2 pods started; ")
    assert ([one.slot for one in it.pods], it.kind) == (["0", "1"], "Job")


STARTED, NOT_YET = shown(), shown(status="False", reason=names.REASON_WAITING)
TIMED_OUT = gangs.config_map(verdict=gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT))


@pytest.mark.parametrize(
    ("gate", "condition", "attempt", "verdict", "opened"),
    [
        pytest.param(OPEN, STARTED, 0, "AllPodsStarted", T0 + 30, id="a release, and when it was"),
        pytest.param(gangs.config_map(), NOT_YET, 0, "", None, id="the gate is closed"),
        pytest.param(gangs.config_map(), STARTED, 0, "", None, id="the ConfigMap is believed before the condition"),
        pytest.param(None, STARTED, 0, "AllPodsStarted", T0 + 30, id="without a ConfigMap the condition tells"),
        pytest.param(TIMED_OUT, NOT_YET, 0, "TimedOut", None, id="a timeout has no time of its own"),
        pytest.param(OPEN, STARTED, 1, "", None, id="a release of an earlier attempt"),
    ],
)
def test_the_verdict_is_that_of_the_present_attempt_and_the_condition_says_when(
    *, gate: ConfigMapSeen | None, condition: ConditionSeen, attempt: int, verdict: str, opened: float | None
) -> None:
    its = Generation("u-1", attempt, 0)
    it = made(through(0, generation=its), through(1, generation=its), gate=gate, condition=condition, attempt=attempt)
    assert (it.verdict, it.opened, it.expected) == (verdict, opened, 2)
    assert [one.slot for one in it.pods] == ["workers-0/0", "workers-0/1"]


def test_a_gang_with_a_failed_index_was_ended_before_its_time_was_up() -> None:
    verdict = gangs.verdict(VerdictKind.TIMEOUT, names.REASON_INDEX_FAILED)
    gate = gangs.config_map(verdict=verdict, waiting_since=gangs.clock())
    it = made(held(0, gave_up=T0 + 40, alive=False), gate=gate, condition=shown(status="False"))
    assert (it.verdict, it.timed_out) == ("IndexFailed", None)
    assert headline(it).endswith("; it was ended, since an index had failed for good")


def test_a_condition_from_before_the_pods_is_of_an_earlier_attempt() -> None:
    it = made(pod(0, at={"created": 50}, generation=Generation("u-1", 1, 0)), condition=shown(), attempt=1)
    assert (it.verdict, it.opened) == ("", None)


def test_only_the_present_attempt_of_the_gangs_own_pods_is_shown_and_it_says_so() -> None:
    new = pod(0, at={"created": 50}, generation=Generation("u-1", 1, 0))
    it = made(through(0), through(1), new, attempt=1)
    assert it.pods == (new,)
    assert any("restart attempt 1; the pods of earlier ones are gone and not shown" in note for note in it.notes)
    assert made(held(0, generation=Generation("u-0", 0, 0)), held(1, job="driver")).pods == ()


def test_the_pod_that_lives_stands_for_its_slot_and_without_indexes_for_itself() -> None:
    failed = held(0, name="old", alive=False)
    it = made(failed, held(0, name="new"), held(1))
    assert [one.name for one in it.pods] == ["new", "train-workers-0-1-x7k2p"]
    assert "not shown: 1 pod, failed or replaced by others" in it.notes
    job = gangs.replicated_job(indexed=False, parallelism=3, completions=3)
    it = made(*(held(None, name=name) for name in "cab"), held(None, name="d", alive=False), job=job)
    assert [one.slot for one in it.pods] == ["a", "b", "c"]


def test_a_replacement_does_not_stretch_the_start() -> None:
    late = pod(1, at={"created": 5000, "scheduled": 5001, "started": 5002, "released": 5002, "running": 5004})
    it = gang_timeline(gangs.jobset(condition=shown()), OPEN, (through(0), late), T0 + 6000)
    assert (len(it.pods), len(it.replacements)) == (1, 1)
    assert it.until < T0 + 100
    assert any("made after the gate was opened" in note for note in it.notes)


@pytest.mark.parametrize(
    ("it", "note"),
    [
        (
            made(held(0), job=gangs.replicated_job(parallelism=4, completions=4)),
            "3 pods of 4 are gone or were never made",
        ),
        (made(pod(0, at={"created": 0, "scheduled": 1, "started": 2})), "Events, which live an hour"),
        (made(msgspec.structs.replace(held(0), barrier_runs=2)), "ran more than once"),
    ],
)
def test_what_is_not_there_or_no_longer_known_is_noted(it: Timeline, note: str) -> None:
    assert any(note in each for each in it.notes)
    assert not any(note in each for each in made(held(0), held(1)).notes)


LATE = "timed out after 300s: 1/2 pods started; missing: 1 pod: Unscheduled: no room"


@pytest.mark.parametrize("kept", [True, False])
def test_a_gang_whose_pods_went_with_its_jobset_keeps_the_verdicts_count_its_words_and_its_moment(
    *, kept: bool
) -> None:
    verdict = msgspec.structs.replace(gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT), message=LATE)
    gate = gangs.config_map(verdict=verdict if kept else None, waiting_since=gangs.clock())
    said = ConditionSeen(
        status="False", reason=names.REASON_TIMED_OUT, message=f"{LATE} (uid u-1, attempt 0, epoch 0)", since=AT_30
    )
    it = made(gate=gate, condition=said, finished=True, failed=True)
    assert (it.verdict, it.started, it.expected, it.timed_out) == ("TimedOut", 1, 2, T0 + 300)
    assert headline(it).endswith("1/2 pods started; it timed out 5m after its first pod started")
    assert tuple(sentences(it, ())) == (
        f"what was decided: {LATE}",
        "first pod started 2027-01-15T08:00:00Z; timed out 2027-01-15T08:05:00Z",
        "no pod of this attempt is there any more",
    )
    nothing = made()
    assert (nothing.pods, nothing.origin, nothing.until) == ((), None, T0 + 60)
