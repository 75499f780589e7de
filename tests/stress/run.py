"""`make stress`: plays thousands of random schedules of one gang of each source and its controllers, on all cores.

The same schedules as in `test_schedules.py`, only more of them. Each is made from its number, so one that fails can be
played again: `make stress STRESS_ARGS="--source job --seed 211"`. Not part of `make test`.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import partial
from random import Random

import structlog

from jobset_gate.sources.table import TEMPLATE_SOURCES
from tests.stress.attempts.schedule import AttemptSchedule, attempts_at_random, play_attempts
from tests.stress.ring.run import RingSchedule, play_ring, ring_at_random
from tests.stress.world.schedule import Schedule, at_random, cut_down, play

ATTEMPTS = "attempts"
"""The model of the rule of attempts: no source, but played with them."""
RING = "startgroup"
SCHEDULES = {**dict.fromkeys(TEMPLATE_SOURCES, 10_000), RING: 10_000, ATTEMPTS: 1_000_000}
AT_ONCE = 100
"""Schedules of one task: a few seconds."""
MOST_FAILED = 5
"""So many failed ones say enough."""


AnySchedule = Schedule | RingSchedule | AttemptSchedule


def main(arguments: Sequence[str] | None = None) -> int:
    """0 if every schedule was right."""
    options = _options(arguments)
    sources = [options.source] if options.source else [*SCHEDULES]
    if options.seed is not None:
        return max(_shown(options.seed, source) for source in sources)
    return max(_run(options, source) for source in sources)


def _run(options: argparse.Namespace, source: str) -> int:
    """0 if every schedule of this source was right."""
    since = time.monotonic()
    played, failed, spent = 0, list[int](), 0.0
    for count, wrong, seconds in _results(options, source):
        played, spent = played + count, spent + seconds
        failed += wrong
        if len(failed) >= MOST_FAILED:
            break
    each = spent / max(1, played) * 1000
    _say(f"{source}: {played:,} schedules in {time.monotonic() - since:.0f} s, {each:.1f} ms each")
    for seed in sorted(failed)[:MOST_FAILED]:
        _shown(seed, source)
    return 1 if failed else 0


def wrong(schedule: AnySchedule) -> AssertionError | None:
    """What is wrong with it, if anything is."""
    try:
        if isinstance(schedule, AttemptSchedule):
            play_attempts(schedule)
        elif isinstance(schedule, RingSchedule):
            play_ring(schedule)
        else:
            play(schedule)
    except AssertionError as found:
        return found
    return None


def _results(options: argparse.Namespace, source: str) -> Iterator[tuple[int, list[int], float]]:
    """(schedules played, numbers of those that failed, seconds of computing), a part after the other."""
    last = options.first + (options.schedules or SCHEDULES[source])
    parts = [range(first, min(first + AT_ONCE, last)) for first in range(options.first, last, AT_ONCE)]
    part_of = partial(_part, source=source)
    if options.jobs == 1:
        yield from map(part_of, parts)
        return
    with ProcessPoolExecutor(options.jobs) as pool:
        tasks = [pool.submit(part_of, part) for part in parts]
        try:
            for task in as_completed(tasks):
                yield task.result()
        finally:
            pool.shutdown(cancel_futures=True)


def _part(seeds: range, source: str) -> tuple[int, list[int], float]:
    _quiet()
    since = time.process_time()
    failed = [seed for seed in seeds if wrong(_schedule(seed, source)) is not None]
    return len(seeds), failed, time.process_time() - since


def _shown(seed: int, source: str) -> bool:
    """Says what is wrong with this one, and which of its steps it takes. False if nothing is."""
    _quiet()
    schedule = _schedule(seed, source)
    found = wrong(schedule)
    if found is None:
        _say(f"{source}, seed {seed}: right")
        return False
    _say(f"{source}, seed {seed}: {type(found).__name__}: {found}")
    shortest = cut_down(schedule, _fails)
    _say(f"  {wrong(shortest)}\n  {shortest}")
    _say(f'  again: make stress STRESS_ARGS="--source {source} --seed {seed}"')
    return True


def _fails(schedule: AnySchedule) -> bool:
    return wrong(schedule) is not None


def _schedule(seed: int, source: str) -> AnySchedule:
    if source == ATTEMPTS:
        return attempts_at_random(seed)
    if source == RING:
        return ring_at_random(seed)
    return at_random(Random(seed), source)  # noqa: S311 - chance that can be repeated


def _say(words: str) -> None:
    sys.stdout.write(words + "\n")
    sys.stdout.flush()


def _quiet() -> None:
    """The controllers log each failed call; a schedule makes many of them fail."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make stress STRESS_ARGS=...", description=__doc__)
    parser.add_argument("--schedules", type=int, help="how many of each")
    parser.add_argument("--source", choices=[*SCHEDULES], help="of this source alone")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, help="this one alone, with the steps that it takes")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
