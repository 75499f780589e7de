"""The texts of conditions and verdicts: they name what is missing, stay short, and do not flap (A7, A9)."""

import re

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobset_gate import names, report, verdicts
from jobset_gate.decide import decide
from jobset_gate.model import ConditionSeen, Decide, Generation, Kind, Missing, Stall, Tally, Verdict, Wait, Why
from tests.jobset_gate.gangs import T0, UID, clock, gang, gate, jobset, pod, replicated_job, waiting_pod

LIMIT = verdicts.MESSAGE_LIMIT


def missing(index: int | None = 0, why: Why = Why.UNSCHEDULED, detail: str = "", since: float | None = None) -> Missing:
    return Missing(replicated_job="workers", job_index=2, index=index, stall=Stall(why=why, detail=detail), since=since)


def named(*slots: Missing, limit: int = LIMIT) -> str:
    return report.name_missing("timed out", slots, limit)


# --- Names ----------------------------------------------------------------------------------------------------------


def test_missing_pods_are_named_with_their_reason() -> None:
    assert named(missing(17, Why.IMAGE_PULL, "pytorch: ImagePullBackOff")) == (
        "timed out; missing: workers-2/17 (ImagePull: pytorch: ImagePullBackOff)"
    )


def test_those_of_one_reason_stand_together() -> None:
    text = named(
        missing(1, detail="no gpu", since=1.0),
        missing(2, Why.EARLIER_INIT, since=2.0),
        missing(3, detail="no gpu", since=3.0),
    )
    assert text == "timed out; missing: workers-2/1, workers-2/3 (Unscheduled: no gpu), workers-2/2 (EarlierInit)"


def test_two_details_of_one_class_are_two_reasons() -> None:
    text = named(missing(1, detail="no gpu"), missing(2, detail="no memory"))
    assert text == "timed out; missing: workers-2/1 (Unscheduled: no gpu), workers-2/2 (Unscheduled: no memory)"


def test_ten_are_named_and_the_others_counted() -> None:
    text = named(*(missing(index) for index in range(300)))
    assert re.findall(r"workers-2/(\d+)", text) == [str(index) for index in range(10)]
    assert text.endswith(" (Unscheduled), and 290 more")


def test_just_ten_are_all_named() -> None:
    assert named(*(missing(index) for index in range(10))).endswith("workers-2/9 (Unscheduled)")


def test_the_longest_waiting_come_first_and_those_without_a_pod_last() -> None:
    text = named(
        missing(1, since=30.0),
        missing(2, Why.NOT_CREATED, since=None),
        missing(3, since=10.0),
        missing(4, since=0.0),
    )
    assert re.findall(r"workers-2/(\d)", text) == ["4", "3", "1", "2"]


def test_nobody_missing_is_not_mentioned() -> None:
    assert named() == "timed out"


def test_a_slot_without_a_number_is_named_by_its_job() -> None:
    assert named(missing(None, Why.NOT_CREATED)) == "timed out; missing: workers-2 (NotCreated)"


@pytest.mark.parametrize("character", ["w", "ä", "😀"])
def test_ten_long_reasons_fit_into_a_kibibyte_and_every_slot_is_named(character: str) -> None:
    slots = [missing(index, detail=f"{index} {character * 300}") for index in range(10)]
    text = named(*slots)
    assert len(text.encode()) <= LIMIT
    assert re.findall(r"workers-2/(\d+)", text) == [str(index) for index in range(10)]


@given(
    st.lists(
        st.builds(
            missing,
            st.integers(0, 10**6),
            st.sampled_from(Why),
            st.text(max_size=400),
            st.none() | st.floats(0, 10),
        ),
        max_size=30,
    ),
    st.integers(300, 2000),
)
def test_the_text_keeps_its_limit_whatever_people_call_their_troubles(slots: list[Missing], limit: int) -> None:
    text = named(*slots, limit=limit)
    assert len(text.encode()) <= limit
    assert text.startswith("timed out")


def test_the_verdict_says_how_many_and_after_how_long() -> None:
    decision = decide(gang(pod(0), waiting_pod(1, detail="no gpu"), gate=gate(waiting_since=clock())), T0 + 300)
    assert isinstance(decision, Decide)
    assert decision.verdict.message == (
        "timed out after 300s: 1/2 pods started; missing: workers-0/1 (Unscheduled: no gpu)"
    )


def test_a_lenient_verdict_says_that_the_gate_was_opened() -> None:
    late = gang(pod(0), waiting_pod(1), gate=gate(waiting_since=clock()), jobset=jobset(releases_on_timeout=True))
    decision = decide(late, T0 + 300)
    assert isinstance(decision, Decide)
    assert decision.verdict.message.startswith("opened after its timeout of 300s: 1/2 pods started; missing: ")


# --- Conditions -----------------------------------------------------------------------------------------------------


def told(seen_at: float, *pods: object, **changes: object) -> tuple[str, str, str]:
    decision = decide(gang(*pods, **changes), seen_at)  # type: ignore[arg-type]  # pods and changes as gang() takes them
    assert isinstance(decision, Wait)
    return decision.condition.status, decision.condition.reason, decision.condition.message


def test_a_waiting_gang_tells_its_progress_and_what_it_waits_for() -> None:
    three = jobset(replicated_job(parallelism=3, completions=3))
    assert told(T0, pod(0), waiting_pod(1, Why.IMAGE_PULL), jobset=three) == (
        "False",
        "WaitingForPods",
        "1/3 pods started; missing: 1 ImagePull, 1 NotCreated",
    )


def test_the_text_does_not_change_while_nothing_happens_but_time() -> None:
    pods = (pod(0), waiting_pod(1))
    texts = {told(T0 + seconds, *pods, gate=gate(waiting_since=clock())) for seconds in range(0, 300, 7)}
    assert len(texts) == 1


def test_the_text_does_not_follow_the_schedulers_wording() -> None:
    """`0/3 nodes are available: ...` changes with every node; so it is for the verdict only."""
    assert told(T0, pod(0), waiting_pod(1, detail="0/3 nodes")) == told(T0, pod(0), waiting_pod(1, detail="0/4 nodes"))


def test_the_text_does_not_depend_on_the_order_in_which_pods_are_known() -> None:
    pods = [waiting_pod(0, Why.IMAGE_PULL), waiting_pod(1, Why.CRASH_LOOP)]
    assert told(T0, *pods) == told(T0, *reversed(pods))


def test_no_text_carries_a_time_of_day() -> None:
    for text in (told(T0, pod(0))[2], report.timed_out(_tally(), 300, [missing(since=T0)], releases=False)):
        assert not re.search(r"\d{4}-\d\d|\d\d:\d\d|1800000", text), text


def _tally() -> Tally:
    return Tally(expected=2, started=1, per_job=(), epoch=0, live_epoch=0, first_start=T0, last_start=T0)


@given(
    st.sampled_from(Kind),
    st.sampled_from((names.REASON_STARTED, names.REASON_TIMED_OUT, names.REASON_BYPASSED)),
    st.integers(0, 10**9 - 1),
    st.integers(0, 10**9 - 1),
    st.text(max_size=100),
)
def test_a_decision_can_be_read_back_from_its_condition(
    kind: Kind, cause: str, attempt: int, epoch: int, message: str
) -> None:
    """Else it would be lost with its ConfigMap."""
    verdict = Verdict(kind=kind, generation=Generation(UID, attempt, epoch), cause=cause, message=message.strip())
    said = report.decided(verdict)
    back = report.decision_in(
        ConditionSeen(status=said.status, reason=said.reason, message=said.message, since=""), UID
    )
    assert back is not None
    assert msgspec.structs.replace(back, message="") == msgspec.structs.replace(verdict, message="")


@pytest.mark.parametrize(
    ("reason", "message"),
    [
        (names.REASON_WAITING, "1/2 pods started (attempt 0, epoch 0)"),
        (names.REASON_GATE_MISSING, "x (attempt 0, epoch 0)"),
        (names.REASON_CONFIG_MAP_CONFLICT, "x (attempt 0, epoch 0)"),
        (names.REASON_STARTED, "all 2 pods started"),
        (names.REASON_STARTED, "(attempt 0, epoch 0) all 2 pods started"),
        (names.REASON_STARTED, "all (attempt x, epoch 0)"),
        ("SomebodyElses", "all 2 pods started (attempt 0, epoch 0)"),
    ],
)
def test_a_condition_that_tells_of_no_decision_proves_none(reason: str, message: str) -> None:
    assert report.decision_in(ConditionSeen(status="True", reason=reason, message=message, since=""), UID) is None


def test_a_missing_gate_is_explained_with_what_to_do() -> None:
    bare = jobset(replicated_job(has_barrier=False), replicated_job("loaders", has_barrier=False), replicated_job("b"))
    said = report.gate_missing(gang(jobset=bare))
    assert (said.status, said.reason) == ("False", "GateMissing")
    assert "workers, loaders carry no group-scheduling-init container" in said.message
    assert said.message.endswith("create the JobSet again to have it gated")


def test_an_invalid_config_is_explained_in_its_own_words() -> None:
    said = report.gate_missing(gang(jobset=jobset(config_problem="timeoutAfterSeconds: 0: must be from 1")))
    assert "timeoutAfterSeconds: 0: must be from 1" in said.message


def test_a_foreign_configmap_is_named() -> None:
    said = report.config_map_conflict(gang())
    assert (said.status, said.reason) == ("False", "ConfigMapConflict")
    assert "train-group-scheduling" in said.message
