"""How sure a median is."""

import pytest

from bench import intervals
from bench.intervals import Interval


def test_the_interval_of_ten_runs_leaves_out_one_at_each_end() -> None:
    assert intervals.of([5, 1, 9, 3, 7, 10, 2, 8, 6, 4]) == Interval(5.5, 2, 9, 10)
    assert intervals.coverage(10, 2) == pytest.approx(1 - 22 / 1024)


@pytest.mark.parametrize("runs", range(1, 60))
def test_an_interval_is_the_narrowest_of_at_least_95_percent(runs: int) -> None:
    found = intervals.of(list(range(1, runs + 1)))
    if found.low is None or found.high is None:
        assert intervals.coverage(runs, 1) < 0.95
        return
    rank = int(found.low)
    assert found.high == runs + 1 - rank
    assert intervals.coverage(runs, rank) >= 0.95
    assert rank + 1 > runs // 2 or intervals.coverage(runs, rank + 1) < 0.95


def test_no_runs_have_no_median() -> None:
    with pytest.raises(ValueError, match="no values"):
        intervals.of([])
