"""The texts of conditions and verdicts: they name what is missing, stay short, and do not flap (A7, A9)."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate import names
from jobset_gate.barrier import messages, verdict_codec
from jobset_gate.barrier.decision import Decide, Wait
from jobset_gate.barrier.model import Generation, MissingByReason, PendingReason, PodSeen, Verdict, VerdictKind
from jobset_gate.explain import text as said
from tests.fakes.gangs import (
    T0,
    UID,
    clock,
    condition,
    config_map,
    decided,
    gang,
    job,
    jobset,
    pod,
    replicated_job,
    waiting_pod,
)
from tests.fakes.present import present

LIMIT = verdict_codec.MESSAGE_LIMIT


def late(*pods: PodSeen, size: int) -> str:
    """The verdict on a gang of two Jobs in whose last one these have not started."""
    target = replicated_job(replicas=2, parallelism=size, completions=size)
    ready = [pod(index) for index in range(size)]
    seen = gang(*ready, *pods, workload=jobset(target), jobs=(job(), job(number=1)))
    decision = decided(Decide, msgspec.structs.replace(seen, config_map=config_map(waiting_since=clock())), T0 + 300)
    return decision.verdict.message


def late_pod(index: int | None, detail: str = "", since: float | None = 1.0) -> PodSeen:
    return waiting_pod(index, detail=detail, number=1, created=since)


# --- Names ----------------------------------------------------------------------------------------------------------


def test_what_is_too_much_is_left_out_whole_and_counted() -> None:
    """Sixty reasons do not fit: whole ones are reported, and how many pods and reasons are not."""
    words = ("".join(chr(97 + int(digit)) for digit in f"{index:02}") for index in range(60))
    text = late(*(late_pod(index, detail=f"no {word}") for index, word in enumerate(words)), size=60)
    assert len(text.encode()) <= LIMIT
    *reported, rest = text.partition("missing: ")[2].split("; ")
    assert all(re.fullmatch(r"1 pod: Unscheduled: no \w\w \(workers-1/\d+\)", it) for it in reported)
    left = present(re.fullmatch(r"and (\d+) more pods in (\d+) groups", rest))
    assert int(left[1]) == int(left[2]) == 60 - len(reported)


@given(
    st.lists(
        st.builds(
            MissingByReason,
            reason=st.sampled_from(PendingReason).map(str),
            message=st.text(max_size=400),
            count=st.integers(1, 10**6),
            slots=st.lists(st.text(min_size=1, max_size=80), max_size=10).map(tuple),
            oldest_count=st.integers(0, 10),
        ),
        max_size=30,
    ),
    st.integers(300, 2000),
)
def test_the_text_keeps_its_limit_whatever_people_call_their_troubles(
    lacking: list[MissingByReason], limit: int
) -> None:
    text = said.sentence("timed out", lacking, limit, ("what comes after",))
    assert len(text.encode()) <= limit
    assert text.startswith("timed out")


# --- Conditions -----------------------------------------------------------------------------------------------------


def reported(seen_at: float, *pods: PodSeen, **changes: object) -> tuple[str, str, str]:
    found = decided(Wait, gang(*pods, **changes), seen_at).condition
    return found.status, found.reason, found.message


def test_a_waiting_gang_tells_its_progress_and_what_it_waits_for() -> None:
    three = jobset(replicated_job(parallelism=3, completions=3))
    assert reported(T0, pod(0), waiting_pod(1, PendingReason.IMAGE_PULL), workload=three) == (
        "False",
        "WaitingForPods",
        (
            "1/3 pods started; missing: 1 pod: ImagePull (workers-0/1); "
            "1 pod: NotCreated: the Job controller has not created it yet (workers-0/2); "
            "at the timeout of 5m: every barrier ends with exit code 124; what follows is up to backoffLimit and "
            "failurePolicy; next: kubectl describe pod train-workers-0-1 -n default; "
            "next: kubectl describe job train-workers-0 -n default"
        ),
    )


def test_the_text_does_not_change_while_nothing_happens_but_time() -> None:
    pods, since = (pod(0), waiting_pod(1)), config_map(waiting_since=clock())
    assert len({reported(T0 + seconds, *pods, config_map=since) for seconds in range(0, 300, 7)}) == 1


@pytest.mark.parametrize(
    ("why", "words", "others"),
    [
        (PendingReason.UNSCHEDULED, "0/3 nodes: 3 Insufficient gpu.", "0/40 nodes: 7 Insufficient gpu."),
        (PendingReason.IMAGE_PULL, 'main: ErrImagePull: "a": no tag', 'main: ImagePullBackOff: Back-off pulling "a"'),
        (PendingReason.CRASH_LOOP, "load: CrashLoopBackOff: exit code 1", "load: CrashLoopBackOff: exit code 2"),
    ],
)
def test_what_others_word_otherwise_is_no_news(why: PendingReason, words: str, others: str) -> None:
    one, other = (reported(T0, pod(0), waiting_pod(1, why, text))[2] for text in (words, others))
    assert one != other
    assert messages.without_noise(one) == messages.without_noise(other)


@pytest.mark.parametrize(
    "other",
    [
        (waiting_pod(0, detail="0/3 nodes"), waiting_pod(1, detail="0/3 nodes")),
        (pod(1), waiting_pod(0, detail="0/3 nodes")),
        (pod(0), waiting_pod(1, detail="0/3 zones")),
        (pod(0), waiting_pod(1, PendingReason.CRASH_LOOP, "0/3 nodes")),
    ],
    ids=["one more is missing", "another one is missing", "for another reason", "of another class"],
)
def test_what_has_happened_is_news(other: tuple[PodSeen, ...]) -> None:
    before = reported(T0, pod(0), waiting_pod(1, detail="0/3 nodes"))[2]
    assert messages.without_noise(before) != messages.without_noise(reported(T0, *other)[2])


def test_no_text_carries_a_time_of_day() -> None:
    for text in (reported(T0, pod(0))[2], late(late_pod(0, since=T0), size=1)):
        assert not re.search(r"\d{4}-\d\d|\d\d:\d\d|1800000", text), text


@given(
    st.sampled_from(VerdictKind),
    st.sampled_from((names.REASON_STARTED, names.REASON_TIMED_OUT, names.REASON_BYPASSED)),
    st.integers(0, 10**9 - 1),
    st.integers(0, 10**9 - 1),
    st.text(max_size=100),
)
def test_a_decision_can_be_read_back_from_its_condition(
    kind: VerdictKind, cause: str, attempt: int, epoch: int, message: str
) -> None:
    """Else it would be lost with its ConfigMap."""
    verdict = Verdict(kind=kind, generation=Generation(UID, attempt, epoch), cause=cause, message=message.strip())
    said = messages.decided(verdict)
    back = present(messages.verdict_in_condition(condition(said.reason, said.message, said.status), UID))
    assert msgspec.structs.replace(back, message="") == msgspec.structs.replace(verdict, message="")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (names.REASON_WAITING, "1/2 pods started (uid u-1, attempt 0, epoch 0)"),
        (names.REASON_STARTED, "all 2 pods started"),
        (names.REASON_STARTED, "all (attempt x, epoch 0)"),
        ("A userElses", "all 2 pods started (uid u-1, attempt 0, epoch 0)"),
    ],
)
def test_a_condition_that_tells_of_no_decision_proves_none(reason: str, message: str) -> None:
    assert messages.verdict_in_condition(condition(reason, message), UID) is None


def test_what_keeps_a_gate_closed_is_explained_with_what_to_do() -> None:
    bare = jobset(replicated_job(has_barrier=False), replicated_job("loaders", has_barrier=False), replicated_job("b"))
    said = messages.gate_missing(gang(workload=bare))
    assert (said.status, said.reason) == ("False", "GateMissing")
    assert "workers, loaders carry no group-scheduling-init container" in said.message
    assert said.message.endswith("create the JobSet again to have it gated")
    said = messages.gate_missing(gang(workload=jobset(config_problem="timeoutAfterSeconds: 0: must be from 1")))
    assert "timeoutAfterSeconds: 0: must be from 1" in said.message
    said = messages.config_map_conflict(gang())
    assert (said.status, said.reason) == ("False", "ConfigMapConflict")
    assert "train-group-scheduling" in said.message
