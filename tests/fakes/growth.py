"""Whether work grows with its input or with the square of it: the CPU time of one input and of four times as much."""

import gc
from collections.abc import Callable
from time import process_time

TIMES = 4
MOST = 8.0
"""What is linear takes 4 times as long, what is quadratic 16 times: half of that is what other work of the machine and
of the interpreter may spoil."""
TRIES = 5
TOO_SHORT = 0.0005
"""Seconds that nobody can measure."""


def growth(work: Callable[[int], Callable[[], object]], size: int) -> float:
    """How much longer four times `size` takes; `work` makes the input and returns what is to be measured."""
    small, large = work(size), work(TIMES * size)
    found = float("inf")
    for _ in range(TRIES):
        found = min(found, _seconds(large) / max(_seconds(small), TOO_SHORT))
        if found < MOST:
            break
    return found


def _seconds(work: Callable[[], object]) -> float:
    gc.collect()
    gc.disable()
    try:
        began = process_time()
        work()
        return process_time() - began
    finally:
        gc.enable()
