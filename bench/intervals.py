"""Medians and how sure they are: intervals from order statistics, which assume nothing about the distribution.

Each of n runs lies below the true median with probability one half. So the number of runs below it is binomial, and
the k-th smallest and k-th largest value enclose it with a probability that can be looked up. Ties only widen it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import comb
from statistics import median

LEVEL = 0.95


@dataclass(frozen=True, slots=True)
class Interval:
    """A median; `low` and `high` enclose the true one with at least 95 %, None if there are too few runs for that."""

    median: float
    low: float | None
    high: float | None
    runs: int


def of(values: Sequence[float]) -> Interval:
    """The narrowest such interval of at least 95 %; needs six values. Raises ValueError for none at all."""
    if not values:
        raise ValueError("no values, no median")
    ordered = sorted(values)
    rank = _rank(len(ordered))
    if rank is None:
        return Interval(median(ordered), None, None, len(ordered))
    return Interval(median(ordered), ordered[rank - 1], ordered[-rank], len(ordered))


def coverage(runs: int, rank: int) -> float:
    """The probability that the `rank`-th smallest and the `rank`-th largest of so many values enclose the median."""
    outside: int = sum(comb(runs, below) for below in range(rank))
    return 1.0 - float(2 * outside) / float(2**runs)


def _rank(runs: int) -> int | None:
    good = [rank for rank in range(1, runs // 2 + 1) if coverage(runs, rank) >= LEVEL]
    return good[-1] if good else None
