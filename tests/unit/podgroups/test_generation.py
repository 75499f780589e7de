"""Who belongs to a generation, whose gate may go, and when it is over (G3)."""

from typing import Any

import msgspec
import pytest

from jobset_gate import names
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.model import Flavor, GangMode
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState, Verdict, decide_deadline, eviction_backoff
from jobset_gate.podgroups.snapshot import GroupSnapshot
from tests.fakes.podgroups.objects import TEN_O_CLOCK, key, made_by, pod, record
from tests.fakes.podgroups.snapshots import bound, group_snapshot, opened, timestamp
from tests.fakes.podgroups.sources import PLUGINS, Json


def made(name: str, after: float) -> Json:
    """A pod that is held, made so many seconds after ten o'clock."""
    return pod(name, meta={"creationTimestamp": timestamp(TEN_O_CLOCK + after)})


NOW = TEN_O_CLOCK + 100


def decided(*pods: Json, **more: object) -> tuple[GroupSnapshot, AdmissionRecord]:
    said = msgspec.structs.replace(record((key(), 1), minimum=2), many=2, newest=TEN_O_CLOCK, **more)
    return group_snapshot(*pods, record=said), said


def passing(*pods: Json, now: float = NOW, **more: object) -> list[str]:
    seen, said = decided(*pods, **more)
    return [it.name for it in generation.members_to_ungate(seen, said, now)]


def is_over(*pods: Json, begun: bool = False, **more: Any) -> bool:
    """`begun`: from the view of the leader that opened it."""
    seen, _ = decided(*pods, **more)
    return generation.is_over([(seen, begun)])


def test_as_many_pass_as_the_group_was_opened_with_the_oldest_first() -> None:
    assert passing(made("c", 2), made("a", 0), made("b", 1)) == ["a", "b"]
    assert passing(opened("a"), made("c", 2), made("b", 1)) == ["b"]
    assert passing(opened("a"), bound("b"), made("c", 2)) == []


def test_one_that_is_gone_or_going_or_has_failed_makes_place_for_another() -> None:
    assert passing(opened("a"), opened("b", meta=GOING), made("c", 2)) == ["c"]
    assert passing(opened("a"), bound("b", phase="Failed"), made("c", 2)) == ["c"]
    assert passing(opened("a"), bound("b", phase="Succeeded"), made("c", 2)) == []


def test_a_pod_that_is_being_ungated_counts_first() -> None:
    """Or the patch that is on its way and that of another would be one too many."""
    seen, said = decided(opened("a"), made("b", 1), made("c", 2))
    assert [it.name for it in generation.members_to_ungate(seen, said, NOW, {"uid-c"})] == ["c"]


def test_once_satisfied_all_pass_and_while_it_is_taken_back_nobody() -> None:
    pods = bound("a"), bound("b"), made("c", 2), made("d", 3)
    assert passing(*pods, satisfied=TEN_O_CLOCK) == ["c", "d"]
    assert passing(*pods, satisfied=TEN_O_CLOCK, stage=AdmissionState.ROLLING_BACK) == []
    assert passing(made("c", 2), stage=AdmissionState.CLOSED) == []


@pytest.mark.parametrize(
    ("pods", "known", "number"), [((), None, 1), ((bound("b", 7),), None, 8), ((), record((key(), 3)), 4)]
)
def test_the_next_number_is_above_all_that_pods_and_record_have_had(
    pods: tuple[Json, ...], known: AdmissionRecord | None, number: int
) -> None:
    """A PodGroup that was made again knows nothing of what its pods have seen."""
    assert generation.next_generation(group_snapshot(pod("a"), *pods, record=known)) == number


def ended(name: str, owner: str, phase: str = "Succeeded") -> Json:
    return bound(name, phase=phase, meta=made_by(owner))


def next_one(name: str, owner: str, after: float = 1, uid: str = "") -> Json:
    """A held pod that has come since."""
    return pod(name, meta=made_by(owner, uid) | {"creationTimestamp": timestamp(TEN_O_CLOCK + after)})


GOING = {"deletionTimestamp": timestamp(TEN_O_CLOCK)}
MET = {"satisfied": TEN_O_CLOCK}


@pytest.mark.parametrize(
    ("pods", "more", "over"),
    [
        ((), {}, True),
        ((made("a", 0),), {}, False),  # half-opened: it was there when it was decided
        ((made("a", 0),), {"begun": True}, True),
        ((made("a", 1),), {}, True),  # it came later, and nobody else is left
        ((opened("a"), made("b", 1)), {}, False),
        ((opened("a", meta=GOING), made("b", 1)), {}, True),
        ((bound("a", phase="Failed"), made("b", 1)), {}, True),
        ((made("a", 0),), MET, True),  # so all were opened once
        ((bound("a"), made("b", 1)), MET, False),
        # Nobody comes, so it is what it was.
        ((bound("a", phase="Succeeded"),), MET, False),
        ((bound("a", meta=GOING),), MET, False),
        # Used again while its pods are still there: by bare pods, by another Job, by one of the same name.
        ((bound("a", phase="Succeeded"), made("b", 1)), MET, True),
        ((bound("a", meta=GOING), made("b", 1)), MET, True),
        ((ended("a", "one"), next_one("b", "two")), MET, True),
        ((ended("a", "one"), ended("b", "one", "Failed"), next_one("c", "two")), MET, True),
        ((bound("a", meta=made_by("one", "old")), next_one("b", "one", uid="new")), MET, True),
        ((bound("a", meta=made_by("one") | GOING), next_one("b", "one")), MET, True),  # suspended and resumed
        # A Job tries again what has failed.
        ((ended("a", "one", "Failed"), next_one("b", "one")), MET, False),
        ((ended("a", "one"), ended("b", "one", "Failed"), next_one("c", "one")), MET, False),
        # Another controller's pods come while a member is alive.
        ((bound("a", meta=made_by("one")), next_one("b", "two")), MET, False),
    ],
)
def test_it_is_over_when_nobody_keeps_it_alive_and_others_come_or_nobody_is_left(
    pods: tuple[Json, ...], more: Json, over: bool
) -> None:
    assert is_over(*pods, **more) is over


def test_gangs_that_were_opened_together_are_over_together() -> None:
    both = record((key("one"), 1), (key("two"), 1), minimum=1)
    both = msgspec.structs.replace(both, satisfied=TEN_O_CLOCK)
    one = group_snapshot(ended("a", "one"), next_one("b", "next"), record=both)
    other = group_snapshot(ended("c", "other"), record=both)
    alive = group_snapshot(bound("c", meta=made_by("other")), record=both)
    assert not generation.is_over([(one, True), (alive, True)])
    assert generation.is_over([(one, True), (other, True)])
    assert not generation.is_over([(other, True), (other, True)])


def test_a_newcomer_of_a_new_owner_joins_after_a_while_in_which_those_before_it_may_be_marked_for_deletion() -> None:
    pods = bound("a", meta=made_by("one")), next_one("b", "two", after=90), next_one("c", "one", after=90)
    assert passing(*pods, now=NOW - 10, **MET) == ["c"]
    assert passing(*pods, now=NOW - 5, **MET) == ["b", "c"]
    seen, _ = decided(*pods, **MET)
    assert generation.seconds_until_join(seen, NOW - 9) == pytest.approx(4)
    assert generation.seconds_until_join(seen, NOW) is None


def test_all_jobs_of_a_jobset_are_one_owner() -> None:
    labels = {PLUGINS: "g", names.JS_NAME: "js"}
    there = bound("a", meta=made_by("js-work-0"), labels=labels)
    later = pod("b", meta=made_by("js-work-1") | {"creationTimestamp": timestamp(NOW - 1)}, labels=labels)
    assert passing(there, later, **MET) == ["b"]


def test_bound_are_all_that_have_a_node_and_who_has_ended_counts_in_its_own_generation() -> None:
    pods = bound("a"), bound("b", phase="Succeeded"), bound("c", phase="Failed"), bound("d", 7), opened("e")
    assert generation.count_bound(decided(*pods, bound("f", meta=GOING), bound("old", 7, phase="Succeeded"))[0]) == 4


CLOSED: Json = {"stage": AdmissionState.CLOSED}
BACK: Json = CLOSED | {"rolled_back": 1}


@pytest.mark.parametrize(
    ("pods", "more", "present", "already_bound"),
    [
        # One of a Job has succeeded before the others were taken back: the Job makes but three again.
        ((ended("a", "j"), *(next_one(it, "j") for it in "bcd")), BACK, 4, 1),
        ((ended("a", "j"), *(next_one(it, "other") for it in "bcd")), BACK, 4, 1),
        ((ended("a", "j", "Failed"), *(next_one(it, "j") for it in "bcd")), BACK, 3, 0),
        # What the run before has left is none of the next one's.
        ((ended("a", "j"), *(next_one(it, "other") for it in "bcd")), CLOSED, 3, 0),
        ((bound("a", phase="Succeeded"), made("b", 1)), CLOSED, 1, 0),
        ((ended("a", "j"), next_one("b", "j")), CLOSED, 2, 1),
        ((bound("a", meta=made_by("j", "old")), next_one("b", "j", uid="new")), CLOSED, 1, 0),
        ((bound("a", meta=GOING), made("b", 1)), CLOSED, 1, 0),
        ((bound("a"), made("b", 1)), CLOSED, 2, 1),
    ],
)
def test_gathering_and_binding_count_those_that_have_succeeded_alike(
    pods: tuple[Json, ...], more: Json, present: int, already_bound: int
) -> None:
    """Or a group would be opened that can never come to its minimum, and taken back, again and again."""
    seen, _ = decided(*pods, **more)
    assert (seen.group.present, generation.count_bound(seen)) == (present, already_bound)


def test_the_limit_begins_with_the_last_gate_removed() -> None:
    """A moment to come is none that one of us has written; clocks differ a little, then it is now."""
    for first, other, began in (
        (opened("a", at=TEN_O_CLOCK + 5), made("b", 0), None),
        (opened("a", at=TEN_O_CLOCK + 5), opened("b", at=TEN_O_CLOCK + 9), TEN_O_CLOCK + 9),
        (opened("a", at=NOW + 3600), opened("b", at=TEN_O_CLOCK + 9), TEN_O_CLOCK + 9),
        (opened("a", at=NOW + 3), opened("b", at=TEN_O_CLOCK + 9), NOW),
    ):
        seen, said = decided(first, other)
        assert generation.deadline_start([seen], said, NOW) == began


def test_the_decision_stands_on_the_first_home_there_is() -> None:
    both = record((key("one"), 1), (key("two"), 1))
    assert generation.record_holder(both, {key("one"), key("two")}) == key("one")
    assert generation.record_holder(both, {key("two")}) == key("two")
    assert generation.record_holder(both, set()) is None


@pytest.mark.parametrize(
    ("flavor", "bound", "more", "now", "verdict"),
    [
        (Flavor.ALIBABA, 20, {}, 999, (Verdict.SATISFIED, 0)),
        (Flavor.ALIBABA, 19, {}, 130, (Verdict.WAIT, 30)),
        (Flavor.ALIBABA, 19, {}, 160, (Verdict.EVICT, 0)),
        (Flavor.ALIBABA, 0, {"mode": GangMode.NON_STRICT}, 160, (Verdict.MARK, 0)),
        (Flavor.SCHEDULER_PLUGINS, 18, {}, 160, (Verdict.EXTEND, 60)),
        (Flavor.SCHEDULER_PLUGINS, 17, {}, 160, (Verdict.EVICT, 0)),
        (Flavor.SCHEDULER_PLUGINS, 18, {"extended": True}, 160, (Verdict.WAIT, 60)),
        (Flavor.SCHEDULER_PLUGINS, 18, {"extended": True}, 220, (Verdict.EVICT, 0)),
    ],
)
def test_what_becomes_of_the_limit(
    flavor: Flavor, bound: int, more: Json, now: float, verdict: tuple[Verdict, float]
) -> None:
    said = msgspec.structs.replace(record((key(), 1), minimum=20), **more)
    assert decide_deadline(said, flavor, bound=bound, started=100.0, now=now) == verdict


def test_the_pause_doubles_up_to_five_minutes() -> None:
    assert [eviction_backoff(it) for it in (0, 1, 2, 3, 4, 5, 99)] == [10, 20, 40, 80, 160, 300, 300]
