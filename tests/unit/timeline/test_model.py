"""One pod's way and a gang's sums: never backwards, never guessed, idle seconds and their cost to the second."""

from itertools import pairwise

import pytest
from hypothesis import given, settings

from jobset_gate.timeline.model import Activity, PodTimeline, Step, Timeline
from jobset_gate.timeline.rows import BANDS, MOST_JOBS, MOST_PODS, SLOWEST, rows
from jobset_gate.timeline.summary import headline, idle_devices, step_summary, total_cost
from tests.fakes.timelines import GPUS, T0, held, pod, pod_timelines, through, timeline, timelines

NOW = T0 + 600


def doings(it: PodTimeline, until: float = NOW) -> list[tuple[Activity, float, float]]:
    return [(span.activity, span.start - T0, span.end - T0) for span in it.spans(until)]


def test_a_pod_goes_through_all_doings_in_order() -> None:
    assert doings(through(), T0 + 40) == [
        (Activity.WAITING, 0, 1),
        (Activity.PREPARING, 1, 10),
        (Activity.HELD, 10, 30),
        (Activity.STARTING, 30, 32),
        (Activity.RUNNING, 32, 40),
    ]


def test_what_lies_around_a_lost_time_is_not_known() -> None:
    it = pod(at={"created": 0, "started": 20, "running": 50})
    assert it.unknown_steps == {Step.SCHEDULED, Step.PULLED, Step.RELEASED, Step.MAIN_PULLED}
    assert doings(it, T0 + 60) == [(Activity.UNKNOWN, 0, 20), (Activity.UNKNOWN, 20, 50), (Activity.RUNNING, 50, 60)]


@pytest.mark.parametrize(
    ("it", "seconds", "until"),
    [(held(gave_up=T0 + 25, alive=False), 15, 25), (held(alive=False), None, 10)],
    ids=["gave up", "vanished: nobody knows how long it was held"],
)
def test_one_that_is_gone_does_nothing_afterwards(it: PodTimeline, seconds: float | None, until: float) -> None:
    assert it.held_seconds(NOW) == seconds
    assert doings(it)[-1] == (Activity.HELD, 10, until)


@given(pod_timelines())
def test_spans_follow_each_other_and_never_go_backwards(it: PodTimeline) -> None:
    found = it.spans(NOW)
    assert all(span.start <= span.end for span in found)
    assert all(before.end == after.start or before.end < after.start for before, after in pairwise(found))
    turns = [span.activity for span in found if span.activity is not Activity.UNKNOWN]
    assert turns == sorted(turns, key=list(Activity).index)


@given(pod_timelines())
def test_each_step_is_known_or_lost_or_to_come(it: PodTimeline) -> None:
    assert not it.unknown_steps & it.times.keys()
    order = list(it.path.steps)
    last = max(order.index(step) for step in (*it.times, *it.gone))
    assert {step for step in order if it.reached(step)} == set(order[: last + 1])


def test_the_skew_goes_from_the_first_to_the_last_main() -> None:
    found = step_summary((through(0), through(1, opened=33), through(2, opened=31)), Step.RUNNING)
    assert (found.spread, found.known, found.lost, found.pending) == (3, 3, 0, 0)
    assert (found.first, found.median, found.last) == (T0 + 32, T0 + 33, T0 + 35)


def test_devices_stand_idle_from_the_barriers_start_to_the_release() -> None:
    (found,) = idle_devices(
        timeline(through(0, devices=GPUS), through(1, start=25, devices=GPUS), pod(2, at={"created": 0}))
    )
    assert (found.resource, found.devices, found.seconds, found.unknown) == ("nvidia.com/gpu", 16, 8 * (20 + 5), 0)
    assert idle_devices(timeline(pod(0, at={"created": 0, "scheduled": 1}, devices=GPUS))) == (), "not at the gate yet"


@pytest.mark.parametrize(
    ("prices", "cost"),
    [({}, None), ({"": 3.6}, 0.16), ({"nvidia.com/gpu": 36.0, "": 1.0}, 1.6), ({"amd.com/gpu": 3.6}, None)],
)
def test_a_price_for_an_hour_gives_a_cost(prices: dict[str, float], cost: float | None) -> None:
    (found,) = idle_devices(timeline(through(0, devices=GPUS)), prices)
    assert found.cost == (None if cost is None else pytest.approx(cost))
    assert total_cost([found]) == found.cost


def test_kinds_without_a_price_leave_the_total_open() -> None:
    both = (("amd.com/gpu", 1), ("nvidia.com/gpu", 2))
    found = idle_devices(timeline(through(0, devices=both)), {"nvidia.com/gpu": 1.0})
    assert ([it.cost is None for it in found], total_cost(found)) == ([True, False], None)


@given(timelines(30))
@settings(max_examples=40)
def test_the_sums_hold_for_any_gang(it: Timeline) -> None:
    for each in (step_summary(it.pods, step) for step in it.path.steps):
        assert each.known + each.lost + each.pending == len(it.pods)
        assert (each.first is None) == (each.known == 0)
        if each.first is not None and each.median is not None and each.last is not None:
            assert each.first <= each.median <= each.last
    for one in idle_devices(it):
        assert 0 <= one.seconds <= one.devices * 600
        assert 0 <= one.unknown <= len(it.pods)
    assert it.origin is not None
    assert it.origin <= it.until
    assert headline(it)
    assert step_summary(it.pods, Step.CREATED).pending == 0


# --- Rows: few pods have one each; many are bands that leave nobody out ----------------------------------------------


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
