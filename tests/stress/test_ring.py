"""Whatever the schedule of a start group: never an early, stale or contradicting verdict, and always an end (K5 to K7).

The controllers' own code, as in `test_schedules.py`, on pods that nothing marks with their generation. `make stress`
tries many more.
"""

from __future__ import annotations

import os

import pytest

from tests.stress.ring.run import play_ring, ring_at_random

DEEP = os.environ.get("HYPOTHESIS_PROFILE") == "deep"
WALKS = 4_000 if DEEP else 240
PARTS = 4
pytestmark = [pytest.mark.usefixtures("quiet"), pytest.mark.timeout(3600 if DEEP else 120)]


@pytest.mark.parametrize("part", range(PARTS))
def test_no_schedule_of_a_start_group_makes_an_early_stale_or_double_verdict_and_every_one_ends(part: int) -> None:
    for seed in range(part, WALKS, PARTS):
        schedule = ring_at_random(seed)
        try:
            play_ring(schedule)
        except AssertionError as wrong:
            wrong.add_note(f"seed {seed}: {schedule}")
            raise
