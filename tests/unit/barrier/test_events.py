"""What Events say of a gang: anybody who may write Events of its namespace may have said it."""

from jobset_gate.barrier.events import CoreEvent, InvolvedObject, denials_by_job, with_events
from jobset_gate.barrier.model import GangSnapshot, PendingReason
from tests.fakes.gangs import gang, missing_slots, waiting_pod


def event(name: str, message: str = "", *, at: str | None = None, uid: str = "") -> CoreEvent:
    about = InvolvedObject(name=name, uid=uid)
    return CoreEvent(involved_object=about, reason="FailedMount", message=message, last_timestamp=at)


def whys(seen: GangSnapshot) -> list[tuple[PendingReason, str]]:
    return [(it.cause.reason, it.cause.message) for it in missing_slots(seen)]


def test_words_of_an_event_bring_no_control_characters_with_them() -> None:
    said = event("train-workers-0", "quota\x1b[2J\n exceeded\u2066\x85 now")
    assert denials_by_job([said]) == {"train-workers-0": "quota^[[2J exceeded\\u2066 now"}


def test_of_what_was_refused_the_last_word_counts_and_only_of_the_gangs_jobs() -> None:
    last = event("train-workers-0", "used: 2", at="2026-01-01T00:00:09Z")
    refusals = [last, event("train-workers-0", "used: 1", at="2026-01-01T00:00:01Z"), event("other", "no")]
    assert with_events(gang(), refusals, (), ()).denials == (("train-workers-0", "used: 2"),)


def test_a_node_that_comes_is_for_pods_without_one() -> None:
    pods = (waiting_pod(0, bound=False), waiting_pod(1, PendingReason.STARTING))
    seen = with_events(gang(*pods), (), [event(pod.name) for pod in pods], ())
    assert whys(seen) == [(PendingReason.NODE_PROVISIONING, ""), (PendingReason.STARTING, "")]


def test_a_kubelets_complaint_about_this_pod_is_the_reason_only_while_nothing_else_is_known() -> None:
    silent, shown = waiting_pod(0, PendingReason.STARTING), waiting_pod(1, PendingReason.IMAGE_PULL, "x: ErrImagePull")
    troubles = [event(pod.name, "no  such\n volume", uid=pod.uid) for pod in (silent, shown)]
    known = (PendingReason.IMAGE_PULL, "x: ErrImagePull")
    seen = with_events(gang(silent, shown), (), (), troubles)
    assert whys(seen) == [(PendingReason.STARTING, "FailedMount: no such volume"), known]
    earlier = with_events(gang(silent, shown), (), (), [event(silent.name, "old", uid="gone")])
    assert whys(earlier) == [(PendingReason.STARTING, ""), known]
