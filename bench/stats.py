"""Percentiles and the few other numbers that tables are made of."""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import geometric_mean, median

__all__ = ["geometric_mean", "median", "percentile"]


def percentile(values: Sequence[float], percent: float) -> float:
    """The smallest value that at least `percent` of them do not exceed: of under 100 values, p99 is the largest."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]
