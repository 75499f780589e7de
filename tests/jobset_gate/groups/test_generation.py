"""Who belongs to a generation, whose gate may go, and when it is over (G3)."""

import msgspec
import pytest

from jobset_gate.groups import generation
from jobset_gate.groups.record import Record, Stage
from jobset_gate.groups.seen import GroupSeen
from tests.jobset_gate.groups.builders import Json
from tests.jobset_gate.groups.objects import TEN_O_CLOCK, key, pod, record
from tests.jobset_gate.groups.seeing import bound, group_seen, opened, stamp


def made(name: str, after: float) -> Json:
    """A pod that is held, made so many seconds after ten o'clock."""
    return pod(name, meta={"creationTimestamp": stamp(TEN_O_CLOCK + after)})


NOW = TEN_O_CLOCK + 100


def decided(*pods: Json, **more: object) -> tuple[GroupSeen, Record]:
    said = msgspec.structs.replace(record((key(), 1), minimum=2), many=2, newest=TEN_O_CLOCK, **more)
    return group_seen(*pods, record=said), said


def passing(*pods: Json, **more: object) -> list[str]:
    return [it.name for it in generation.passing(*decided(*pods, **more))]


def test_as_many_pass_as_the_group_was_opened_with_the_oldest_first() -> None:
    assert passing(made("c", 2), made("a", 0), made("b", 1)) == ["a", "b"]
    assert passing(opened("a"), made("c", 2), made("b", 1)) == ["b"]
    assert passing(opened("a"), bound("b"), made("c", 2)) == []


def test_one_that_is_gone_or_going_or_has_failed_makes_place_for_another() -> None:
    going = opened("b", meta={"deletionTimestamp": stamp(TEN_O_CLOCK)})
    assert passing(opened("a"), going, made("c", 2)) == ["c"]
    assert passing(opened("a"), bound("b", phase="Failed"), made("c", 2)) == ["c"]
    assert passing(opened("a"), bound("b", phase="Succeeded"), made("c", 2)) == []


def test_whoever_is_being_seen_to_counts_first() -> None:
    """Or the patch that is on its way and that of another would be one too many."""
    seen, said = decided(opened("a"), made("b", 1), made("c", 2))
    assert [it.name for it in generation.passing(seen, said, {"uid-c"})] == ["c"]


def test_once_satisfied_all_pass_and_while_it_is_taken_back_nobody() -> None:
    pods = bound("a"), bound("b"), made("c", 2), made("d", 3)
    assert passing(*pods, satisfied=TEN_O_CLOCK) == ["c", "d"]
    assert passing(*pods, satisfied=TEN_O_CLOCK, stage=Stage.ROLLING_BACK) == []
    assert passing(made("c", 2), stage=Stage.CLOSED) == []


def test_the_next_number_is_above_all_that_pods_and_record_have_had() -> None:
    """A PodGroup that was made anew knows nothing of what its pods have seen."""
    assert generation.upcoming(group_seen(pod("a"))) == 1
    assert generation.upcoming(group_seen(pod("a"), bound("b", 7))) == 8
    assert generation.upcoming(group_seen(pod("a"), record=record((key(), 3)))) == 4


@pytest.mark.parametrize(
    ("pods", "more", "over"),
    [
        ((), {}, True),
        ((made("a", 0),), {}, False),  # half-opened: it was there when it was decided
        ((made("a", 1),), {}, True),  # it came later, and nobody else is left
        ((opened("a"), made("b", 1)), {}, False),
        ((made("a", 0),), {"satisfied": TEN_O_CLOCK}, True),  # so all were opened once
        ((bound("a", phase="Succeeded"),), {"satisfied": TEN_O_CLOCK}, False),  # finished pods are still there
    ],
)
def test_it_is_over_when_nobody_is_left_who_was_in_it(
    pods: tuple[Json, ...], more: dict[str, object], over: bool
) -> None:
    assert generation.is_over(*decided(*pods, **more)) is over


def test_it_is_over_for_whoever_has_opened_it_and_sees_nobody_left() -> None:
    seen, said = decided(made("a", 0))
    assert generation.is_over(seen, said, begun=True)


def test_bound_are_all_that_have_a_node_and_who_has_ended_counts_in_its_own_generation() -> None:
    pods = bound("a"), bound("b", phase="Succeeded"), bound("c", phase="Failed"), bound("d", 7), opened("e")
    going = bound("f", meta={"deletionTimestamp": stamp(TEN_O_CLOCK)})
    seen = group_seen(*pods, going, bound("old", 7, phase="Succeeded"))
    assert generation.bound(seen, 1) == 4


def test_the_limit_begins_with_the_last_gate_removed() -> None:
    seen, said = decided(opened("a", at=TEN_O_CLOCK + 5), made("b", 0))
    assert generation.begun([seen], said, NOW) is None
    seen, said = decided(opened("a", at=TEN_O_CLOCK + 5), opened("b", at=TEN_O_CLOCK + 9))
    assert generation.begun([seen], said, NOW) == TEN_O_CLOCK + 9


def test_a_moment_to_come_is_none_that_one_of_us_has_written() -> None:
    """Clocks differ a little; then it is now."""
    seen, said = decided(opened("a", at=NOW + 3600), opened("b", at=TEN_O_CLOCK + 9))
    assert generation.begun([seen], said, NOW) == TEN_O_CLOCK + 9
    seen, said = decided(opened("a", at=NOW + 3), opened("b", at=TEN_O_CLOCK + 9))
    assert generation.begun([seen], said, NOW) == NOW


def test_the_decision_stands_on_the_first_home_there_is() -> None:
    both = record((key("one"), 1), (key("two"), 1))
    assert generation.holder(both, {key("one"), key("two")}) == key("one")
    assert generation.holder(both, {key("two")}) == key("two")
    assert generation.holder(both, set()) is None
