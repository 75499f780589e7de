"""The wait limit, the way back of each kind of owner, and the phase that a status shows (G4, G5)."""

from fractions import Fraction
from typing import Any

import pytest

from jobset_gate.podgroups import deadline
from jobset_gate.podgroups.deadline import DeadlineInput, Verdict
from jobset_gate.podgroups.model import Flavor, GangMode


def placing(**more: Any) -> DeadlineInput:
    said: dict[str, Any] = {
        "flavor": Flavor.ALIBABA,
        "mode": GangMode.STRICT,
        "minimum": 20,
        "bound": 0,
        "started_at": 100.0,
        "wait": Fraction(60),
    }
    return DeadlineInput(**(said | more))


@pytest.mark.parametrize(
    ("seen", "now", "verdict"),
    [
        (placing(bound=20), 999, (Verdict.SATISFIED, 0)),
        (placing(bound=19), 130, (Verdict.WAIT, 30)),
        (placing(bound=19), 160, (Verdict.EVICT, 0)),
        (placing(mode=GangMode.NON_STRICT), 160, (Verdict.MARK, 0)),
        (placing(flavor=Flavor.SCHEDULER_PLUGINS, bound=18), 160, (Verdict.EXTEND, 60)),
        (placing(flavor=Flavor.SCHEDULER_PLUGINS, bound=17), 160, (Verdict.EVICT, 0)),
        (placing(flavor=Flavor.SCHEDULER_PLUGINS, bound=18, extended=True), 160, (Verdict.WAIT, 60)),
        (placing(flavor=Flavor.SCHEDULER_PLUGINS, bound=18, extended=True), 220, (Verdict.EVICT, 0)),
    ],
)
def test_what_becomes_of_the_limit(seen: DeadlineInput, now: float, verdict: tuple[Verdict, float]) -> None:
    assert deadline.decide_deadline(seen, now) == verdict


def test_the_pause_doubles_up_to_five_minutes() -> None:
    assert [deadline.eviction_backoff(it) for it in (0, 1, 2, 3, 4, 5, 99)] == [10, 20, 40, 80, 160, 300, 300]
