"""`make stress`: plays thousands of random schedules of one gang of each source and its controllers, on all cores.

The same schedules as in `test_schedules.py`, only more of them. Each is made from its number, so one that fails can be
played again: `make stress STRESS_ARGS="--source job --seed 211"`. Not part of `make test`.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from random import Random

import structlog

from tests.stress.world.schedule import PLAYED, Schedule, at_random, cut_down, fault


def main() -> int:
    """0 if every schedule was right."""
    options = _options()
    found = 0
    for source in [options.source] if options.source else PLAYED:
        if options.seed is None:
            numbers = range(options.first, options.first + options.schedules)
            with ProcessPoolExecutor(options.jobs, initializer=quiet) as pool:
                right = pool.map(partial(_is_right, source), numbers, chunksize=100)
                failed = [number for number, it in zip(numbers, right, strict=True) if not it]
            print(f"{source}: {len(numbers):,} schedules, {len(failed)} wrong", flush=True)
        else:
            failed = [] if _is_right(source, options.seed) else [options.seed]
        for seed in failed[:5]:  # so many say enough
            _show(source, seed)
        found += len(failed)
    return min(found, 1)


def _is_right(source: str, seed: int) -> bool:
    return fault(_schedule(source, seed)) is None


def _show(source: str, seed: int) -> None:
    """What is wrong with it, and which of its steps it takes."""
    shortest = cut_down(_schedule(source, seed))
    print(f"{source}, seed {seed}: {fault(shortest)}\n  {shortest}", flush=True)
    print(f'  again: make stress STRESS_ARGS="--source {source} --seed {seed}"', flush=True)


def _schedule(source: str, seed: int) -> Schedule:
    return at_random(Random(seed), source)  # noqa: S311 - chance that can be repeated


def quiet() -> None:
    """The controllers log each failed call; a schedule makes many of them fail."""
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger("critical"))


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make stress STRESS_ARGS=...", description=__doc__)
    parser.add_argument("--schedules", type=int, default=10_000, help="how many of each")
    parser.add_argument("--source", choices=PLAYED, help="of this source alone")
    parser.add_argument("--first", type=int, default=0, help="number of the first")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes")
    parser.add_argument("--seed", type=int, help="this one alone, with the steps that it takes")
    return parser.parse_args()


if __name__ == "__main__":
    quiet()
    sys.exit(main())
