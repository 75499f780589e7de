"""The pace of the demo: virtual time takes its share of real time."""

import asyncio
import time

from jobset_gate.fake.clock import run_virtual


def test_time_passes_at_its_pace_for_people_to_watch() -> None:
    began = time.monotonic()
    assert run_virtual(asyncio.sleep(100.0, "slept"), pace=0.001) == "slept"
    assert time.monotonic() - began >= 0.1
