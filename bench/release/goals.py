"""What was to be reached, from runs in pairs, and whether it was: by the median, and beyond doubt or not."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from bench import intervals
from bench.intervals import Interval
from bench.release.methods import ANNOTATION, FLOOR, KEP, STREAM, ReleaseMethod
from bench.release.results import ReleaseRun, Results

Compare = Callable[[ReleaseRun, ReleaseRun], float]


@dataclass(frozen=True, slots=True)
class Goal:
    """`compare` of each pair is to be at most or at least `limit`; None: it is only reported."""

    one: ReleaseMethod
    other: ReleaseMethod
    compare: Compare
    text: str
    unit: str
    limit: float | None = None
    at_least: bool = False
    only: int | None = None
    """With so many pods only."""


@dataclass(frozen=True, slots=True)
class Reached:
    """A goal and the measured value."""

    goal: Goal
    pods: int
    found: Interval

    @property
    def met(self) -> bool | None:
        """By the median; None if nothing was to be reached."""
        return self._keeps(self.found.median)

    @property
    def sure(self) -> bool | None:
        """Whether both ends of the interval say the same as the median; None if there is no interval."""
        low, high = self.found.low, self.found.high
        if low is None or high is None:
            return None
        return self._keeps(low) == self._keeps(high) == self.met

    @property
    def verdict(self) -> str:
        """As the table says it."""
        if self.met is None:
            return ""
        word = "met" if self.met else "MISSED"
        doubts = {True: "", False: ", not beyond doubt", None: ", too few runs to be sure"}
        return word + doubts[self.sure]

    def _keeps(self, value: float) -> bool | None:
        limit = self.goal.limit
        if limit is None:
            return None
        return value >= limit if self.goal.at_least else value <= limit


def _ratio(one: ReleaseRun, other: ReleaseRun) -> float:
    return one.last / other.last


def _difference(one: ReleaseRun, other: ReleaseRun) -> float:
    return one.last - other.last


SMALL: Final = 20
GOALS: Final = (
    Goal(STREAM, FLOOR, _difference, "(c)'s last after (d)'s", " s", 0.5),
    Goal(ANNOTATION, FLOOR, _ratio, "(b)'s last to (d)'s", " x", 1.5),
    Goal(KEP, ANNOTATION, _ratio, "(a)'s last to (b)'s", " x", 15, at_least=True, only=SMALL),
    Goal(KEP, STREAM, _ratio, "(a)'s last to (c)'s", " x", 15, at_least=True, only=SMALL),
)


def reached(results: Results) -> Sequence[Reached]:
    """All goals for all sizes with pairs; a goal for one size is only reported for others."""
    found = []
    for pods in results.sizes:
        for goal in GOALS:
            pairs = results.pairs(goal.one, goal.other, pods)
            if pairs:
                asked = goal if goal.only in (None, pods) else _without_limit(goal)
                found.append(Reached(asked, pods, intervals.of([goal.compare(one, other) for one, other in pairs])))
    return found


def _without_limit(goal: Goal) -> Goal:
    return Goal(goal.one, goal.other, goal.compare, goal.text, goal.unit)
