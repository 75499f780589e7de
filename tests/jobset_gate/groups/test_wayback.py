"""The wait limit, the way back of each kind of owner, and the phase that a status shows (G4, G5)."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.groups import phases, wayback
from jobset_gate.groups.model import Design, Mode
from jobset_gate.groups.phases import Counts, Phase
from jobset_gate.groups.wayback import Extend, How, Mark, More, Owner, Placing, Return, RollBack, Satisfied


def placing(**more: Any) -> Placing:
    said: dict[str, Any] = {
        "design": Design.ALIBABA,
        "mode": Mode.STRICT,
        "minimum": 20,
        "bound": 0,
        "since": 100.0,
        "wait": Fraction(60),
    }
    return Placing(**(said | more))


@pytest.mark.parametrize(
    ("seen", "now", "verdict"),
    [
        (placing(bound=20), 999, Satisfied()),
        (placing(bound=19), 130, More(again=30)),
        (placing(bound=19), 160, RollBack(retry=True, pause=10)),
        (placing(rolled_back=3), 160, RollBack(retry=True, pause=80)),
        (placing(mode=Mode.NON_STRICT), 160, Mark()),
        (placing(design=Design.KOORDINATOR), 160, RollBack(retry=False, pause=10)),
        (placing(design=Design.SCHEDULER_PLUGINS, bound=18), 160, Extend(again=60)),
        (placing(design=Design.SCHEDULER_PLUGINS, bound=17), 160, RollBack(retry=True, pause=10)),
        (placing(design=Design.SCHEDULER_PLUGINS, bound=18, extended=True), 160, More(again=60)),
        (placing(design=Design.SCHEDULER_PLUGINS, bound=18, extended=True), 220, RollBack(retry=True, pause=10)),
    ],
)
def test_what_becomes_of_the_limit(seen: Placing, now: float, verdict: object) -> None:
    assert wayback.decide(seen, now) == verdict


def test_the_pause_doubles_up_to_five_minutes() -> None:
    assert [wayback.pause(it) for it in (0, 1, 2, 3, 4, 5, 99)] == [10, 20, 40, 80, 160, 300, 300]


@pytest.mark.parametrize(
    ("owner", "how", "why"),
    [
        (Owner(kind="Job", name="j", pods=("a",)), How.SUSPEND, ""),
        (Owner(kind="JobSet", name="j", pods=("a",)), How.SUSPEND, ""),
        (
            Owner(kind="Job", name="j", pods=("a",), others=("y", "x")),
            How.BLOCKED,
            "pods of Job j are not in the group: x, y",
        ),
        (
            Owner(kind="JobSet", name="j", pods=("a",), managed_by="example.com/other"),
            How.BLOCKED,
            "JobSet j is managed by example.com/other",
        ),
        (
            Owner(kind="Job", name="j", pods=("a",), by_kueue=True),
            How.BLOCKED,
            "Job j is suspended and resumed by Kueue",
        ),
        (Owner(kind="ReplicaSet", name="r", pods=("a",), others=("x", "y")), How.DELETE, ""),
        (
            Owner(kind="", name="", pods=("b", "a")),
            How.BLOCKED,
            "nobody would make them again, so they are left to you to delete: a, b",
        ),
        (
            Owner(kind="", name="", pods=tuple("abcdefghijklm")),
            How.BLOCKED,
            "nobody would make them again, so they are left to you to delete: a, b, c, d, e, f, g, h, i, j and 3 more",
        ),
    ],
)
def test_each_owner_has_its_way_back(owner: Owner, how: How, why: str) -> None:
    assert wayback.way_of(owner) == Return(owner=owner, how=how, why=why)


@pytest.mark.parametrize(
    ("seen", "phase"),
    [
        (Counts(minimum=3, present=3), Phase.PENDING),
        (Counts(minimum=3, present=3, opened=True), Phase.PENDING),
        (Counts(minimum=3, present=3, opened=True, bound=1), Phase.SCHEDULING),
        (Counts(minimum=3, present=3, opened=True, bound=3, running=2), Phase.SCHEDULING),
        (Counts(minimum=3, present=3, opened=True, bound=3, running=3), Phase.RUNNING),
        (Counts(minimum=3, present=5, opened=True, bound=5, running=2, succeeded=1), Phase.RUNNING),
        (Counts(minimum=3, present=3, opened=True, bound=2, late=True), Phase.UNKNOWN),
        (Counts(minimum=3, present=3, opened=True, bound=3, succeeded=3), Phase.FINISHED),
        (Counts(minimum=3, present=4, opened=True, bound=4, succeeded=3, running=1), Phase.RUNNING),
        (Counts(minimum=3, present=3, opened=True, bound=3, running=2, failed=1), Phase.FAILED),
        (Counts(minimum=3, present=3, opened=False, bound=2, late=True), Phase.PENDING),
    ],
)
def test_the_phase_follows_from_the_facts(seen: Counts, phase: Phase) -> None:
    assert phases.phase(seen) is phase


numbers = st.integers(0, 5)
facts = st.builds(
    Counts,
    minimum=st.integers(1, 5),
    present=numbers,
    bound=numbers,
    running=numbers,
    succeeded=numbers,
    failed=numbers,
    opened=st.booleans(),
    late=st.booleans(),
)


@settings(deadline=None)
@given(facts)
def test_every_combination_of_facts_has_a_phase(seen: Counts) -> None:
    assert phases.phase(seen) in Phase
