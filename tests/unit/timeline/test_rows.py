"""Few pods have a row each; many are bands that leave nobody out, and those that came last are seen for themselves."""

from hypothesis import given, settings

from jobset_gate.timeline.model import Step, Timeline
from jobset_gate.timeline.rows import BANDS, MOST_JOBS, MOST_PODS, SLOWEST, rows
from tests.fakes.timelines import T0, through, timeline, timelines


def test_sixty_pods_have_a_row_each_in_their_order() -> None:
    found = rows(timeline(*(through(it) for it in range(MOST_PODS))))
    assert [row.label for row in found] == [f"workers-0/{it}" for it in range(MOST_PODS)]
    assert not any(row.is_band or row.slow for row in found)


def test_four_thousand_are_tenths_by_when_they_came() -> None:
    pods = [through(it, start=10 + it / 100, opened=100) for it in range(3999)]
    found = rows(timeline(through(0, job="leader", opened=100), *reversed(pods)))
    labels = [row.label for row in found]
    assert labels[:3] == ["leader", "workers 0-10%", "workers 10-20%"]
    assert labels[10:] == ["workers 90-100%", *(f"workers-0/{it}" for it in range(3994, 3999))]
    starts = [row.pod.times[Step.STARTED] for row in found[1:11]]
    assert starts == sorted(starts)
    first = next(it for it in found[1].sums if it.step is Step.STARTED)
    assert (first.first, first.last) == (T0 + 10, T0 + 10 + 398 / 100)


@given(timelines())
@settings(max_examples=40)
def test_nobody_is_left_out_or_counted_twice(it: Timeline) -> None:
    found = [row for row in rows(it) if not row.slow]
    assert sum(row.count for row in found) == len(it.pods)
    assert len(rows(it)) <= max(MOST_PODS, BANDS + MOST_JOBS + SLOWEST)
    for row in found:
        for shown in row.sums:
            assert shown.known + shown.lost + shown.pending == row.count
            half = row.pod.times.get(shown.step)
            if half is not None and shown.first is not None and shown.last is not None:
                assert shown.first <= half <= shown.last
