"""An event loop without sockets that runs until nothing is left to do, and whose time moves only on request."""

from __future__ import annotations

import asyncio
import math
import selectors
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

TOO_MANY_TURNS = 50_000


class _NobodyCalls(selectors.SelectSelector):
    def __init__(self, loop: InstantLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout != 0:
            self._loop.stop()
        self._loop.turn()
        return []


class InstantLoop(asyncio.SelectorEventLoop):
    """`time()` is `now`, in seconds; callbacks run only inside `do`, `settle` and `advance`."""

    def __init__(self) -> None:
        self.now = 0.0
        self._turns = 0
        super().__init__(_NobodyCalls(self))

    def time(self) -> float:
        return self.now

    def turn(self) -> None:
        self._turns += 1
        if self._turns > TOO_MANY_TURNS:
            raise RuntimeError(f"busy for ever at {self.now}")

    def settle(self) -> None:
        """Runs everything that can run now."""
        self._turns = 0
        self.run_forever()

    def do(self, work: Callable[[], T]) -> T:
        """Runs `work` inside the loop, and then everything that can run."""

        async def inside() -> T:
            return work()

        task = self.create_task(inside())
        self.settle()
        return task.result()

    def advance(self, seconds: float) -> None:
        self.now += seconds
        self.settle()

    def until_next_timer(self) -> float:
        """Seconds; infinite if no timer is set."""
        due = (timer.when() for timer in self._scheduled if not timer.cancelled())  # type: ignore[attr-defined]
        return min(due, default=math.inf) - self.now
