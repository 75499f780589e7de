"""explain(seen, now) of a gang that has ended: the count and the words of its verdict stay (A9)."""

from typing import Any

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import Config, VerdictKind
from jobset_gate.explain.gang import explain_gang
from jobset_gate.explain.model import Explanation, FailurePolicies, GangState
from tests.fakes import gangs
from tests.fakes.gangs import T0

NOW = T0 + 100
LATE = "timed out after 900s: 12/17 pods started; missing: 4 pods: Unscheduled: no room; 1 pod: ImagePull: no such host"
ENOUGH = "all 17 pods started"
ENDED: dict[str, Any] = {
    "finished": True,
    "failed": True,
    "finished_message": "jobset failed due to one or more job failures",
}


def ended(reason: str, message: str, status: str = "False", **changes: Any) -> Explanation:
    """A JobSet that has ended, with nothing left but its own status; one pod still dies."""
    condition_ = gangs.condition(reason, message, status=status)
    jobset = gangs.jobset(**({**ENDED, "condition": condition_} | changes))
    return explain_gang(
        gangs.gang(gangs.pod(0, deleting=True), workload=jobset, config_map=None), NOW, policy=FailurePolicies()
    )


def test_a_gang_that_timed_out_stays_so_with_the_verdicts_count_and_reasons_when_its_jobset_has_failed() -> None:
    it = ended(names.REASON_TIMED_OUT, f"{LATE} (uid u-1, attempt 0, epoch 0)")
    assert (it.state, it.started, it.expected, it.parts) == (GangState.TIMED_OUT, 12, 17, ())
    assert it.message == f"{LATE}; then: jobset failed due to one or more job failures"
    assert it.afterwards == ""
    assert messages.parse_missing(it.message) == {"Unscheduled": 4, "ImagePull": 1}


@pytest.mark.parametrize("changes", [ENDED, {}], ids=["failed", "its pods die"])
def test_a_timeout_in_the_configmap_keeps_its_count(changes: dict[str, Any]) -> None:
    verdict = msgspec.structs.replace(gangs.verdict(VerdictKind.TIMEOUT, names.REASON_TIMED_OUT), message=LATE)
    seen = gangs.gang(gangs.pod(0), workload=gangs.jobset(**changes), config_map=gangs.config_map(verdict=verdict))
    it = explain_gang(seen, NOW, policy=FailurePolicies(backoff_limits=(0,)))
    assert (it.state, it.started, it.expected, it.decided) == (GangState.TIMED_OUT, 12, 17, None)
    assert it.message.startswith(LATE)
    assert ("with backoffLimit 0 its Job fails at once" in it.afterwards) == (not changes)


def test_a_gang_with_a_failed_index_is_due_and_then_says_so_and_what_follows_without_a_timeout() -> None:
    lost = gangs.gang(gangs.pod(0), workload=gangs.jobset(config=Config()), jobs=(gangs.job(failed=frozenset({1})),))
    due = explain_gang(lost, NOW)
    assert due.state == GangState.DUE
    assert due.message.startswith("the gang is due to be ended (ended, since an index has failed for good: 1/2 pods")
    assert [(it.reason, it.slots) for it in due.missing] == [("IndexFailed", ("workers-0/1",))]
    verdict = gangs.verdict(VerdictKind.TIMEOUT, names.REASON_INDEX_FAILED)
    decided = msgspec.structs.replace(lost, config_map=gangs.config_map(verdict=verdict))
    it = explain_gang(decided, NOW, policy=FailurePolicies(backoff_limits=(0,)))
    assert (it.state, it.message) == (GangState.INDEX_FAILED, "as decided")
    assert "with backoffLimit 0 its Job fails at once" in it.afterwards
    gone = ended(names.REASON_INDEX_FAILED, "ended: 12/17 pods started (uid u-1, attempt 0, epoch 0)")
    assert (gone.state, gone.started) == (GangState.INDEX_FAILED, 12)


OPENED = "opened after its timeout of 900s: 12/17 pods started (uid u-1, attempt 0, epoch 0)"
WAITED = "3/17 pods started; missing: 14 pods: CrashLoop: fetch: exit code 1"
OF_ANOTHER = f"{LATE} (uid u-0, attempt 0, epoch 0)"
OF_THIS = f"{LATE} (uid u-1, attempt 0, epoch 0)"


@pytest.mark.parametrize(
    ("reason", "message", "status", "changes", "state", "counted", "words"),
    [
        (names.REASON_STARTED, f"{ENOUGH} (uid u-1, attempt 0, epoch 0)", "True", {}, "Failed", (17, 17), ENOUGH),
        (
            *(names.REASON_STARTED, f"{ENOUGH} (uid u-1, attempt 0, epoch 0)", "True"),
            *({"failed": False}, "Completed", (17, 17), ENOUGH),
        ),
        (names.REASON_TIMED_OUT, OPENED, "True", {}, "Failed", (12, 17), ""),
        (names.REASON_TIMED_OUT, OF_THIS, "False", {"attempt": 1}, "Failed", (None, 2), ""),
        (names.REASON_TIMED_OUT, OF_ANOTHER, "False", {}, "Failed", (None, 2), ""),
        (names.REASON_WAITING, WAITED, "False", {}, "Failed", (3, 17), "no verdict on its gate"),
    ],
    ids=["released", "completed", "released at its timeout", "earlier attempt", "earlier JobSet", "while it waited"],
)
def test_a_jobset_that_ended_for_another_reason_keeps_the_last_count_of_its_present_generation(
    *, reason: str, message: str, status: str, changes: Any, state: str, counted: tuple[int | None, int], words: str
) -> None:
    it = ended(reason, message, status, **changes)
    assert (it.state, (it.started, it.expected)) == (state, counted)
    assert it.message.endswith(f"; before that: {words}" if words == ENOUGH else words)


@pytest.mark.parametrize("message", ["", "x", "12/17 pods", "1234567890/1 pods started", "so many: /17 pods started"])
def test_words_that_count_nothing_are_not_counted(message: str) -> None:
    assert messages.parse_progress(message) is None
