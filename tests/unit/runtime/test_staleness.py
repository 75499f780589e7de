"""How old a cache may be, by its last list and by when its events were written."""

import asyncio
import math

import pytest

from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.store import Staleness

UNIX = 1_000_000.0
"""Unix time when the monotonic clock shows 0."""


class Clock:
    """The wall clock of this process, which a user may set."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return UNIX + monotonic() + self.ahead


@pytest.fixture
def clock() -> Clock:
    return Clock()


async def listed(clock: Clock) -> tuple[Staleness, float]:
    """With a list that began now, and Unix time now."""
    it = Staleness(clock)
    it.observe_list(monotonic())
    return it, clock()


async def test_before_the_first_list_nothing_is_there(clock: Clock) -> None:
    it = Staleness(clock)
    assert it.seconds == math.inf
    await asyncio.sleep(7)
    it.observe_list(monotonic() - 5)
    assert it.seconds == pytest.approx(5), "since the list began, not since it was read"


async def test_an_event_is_as_old_as_its_write_whenever_it_arrives(clock: Clock) -> None:
    it, start = await listed(clock)
    await asyncio.sleep(60)
    it.observe_event(start + 5)
    assert it.seconds == pytest.approx(55), "the first event after a minute of silence"
    it.observe_event(start + 59)
    assert it.seconds == pytest.approx(1)
    it.observe_event(start + 30)
    assert it.seconds == pytest.approx(1), "an object that was changed without a date, such as a deleted one"
    await asyncio.sleep(4)
    assert it.seconds == pytest.approx(5)


async def test_a_date_ahead_of_the_clock_is_now(clock: Clock) -> None:
    """Of an API server whose clock is ahead, or of a user: managedFields can be written."""
    it, start = await listed(clock)
    await asyncio.sleep(60)
    it.observe_event(start + 1e9)
    assert it.seconds == pytest.approx(0)
    await asyncio.sleep(3)
    assert it.seconds == pytest.approx(3)


async def test_a_clock_that_is_set_afterwards_makes_nothing_younger(clock: Clock) -> None:
    it, _ = await listed(clock)
    await asyncio.sleep(20)
    clock.ahead = -3600
    assert it.seconds == pytest.approx(20)
