"""What work costs as its input grows: the CPU time of one input and of four times as much, and the memory it leaves."""

import gc
import tracemalloc
from collections.abc import Callable
from time import process_time
from typing import Any

import msgspec

MIB = 1024 * 1024
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


def retained(
    make: Callable[[int], object], kind: Any, convert: Callable[[Any], object], *, many: int = 40, keep: bool = True
) -> float:
    """MiB that are still there after so many objects were read, with or without those that were read."""
    decoder = msgspec.json.Decoder(kind)
    convert(decoder.decode(msgspec.json.encode(make(-1))))
    bodies = [msgspec.json.encode(make(number)) for number in range(many)]
    kept: list[object] = []
    tracemalloc.start()
    try:
        for body in bodies:
            kept[:] = [*(kept if keep else ()), convert(decoder.decode(body))]
        kept[:] = kept if keep else ()
        gc.collect()
        now, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    return now / MIB
