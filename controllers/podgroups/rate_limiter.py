"""How fast words about groups go out: a thousand groups that are placed at once must not take the scheduler's turn."""

import asyncio
from collections.abc import Callable
from typing import Final

PER_SECOND: Final = 20.0
AT_ONCE: Final = 40


class WriteRateLimiter:
    """So many writes per second, and some at once after a rest."""

    def __init__(
        self, patience: Callable[[], float], *, per_second: float = PER_SECOND, at_once: float = AT_ONCE
    ) -> None:
        """`patience` is a clock that nobody sets."""
        self._patience, self._per_second, self._at_once = patience, per_second, at_once
        self._left: float = at_once
        self._counted = patience()

    async def acquire(self) -> None:
        """Returns when one more write may go out."""
        now = self._patience()
        self._left = min(self._at_once, self._left + (now - self._counted) * self._per_second)
        self._counted = now
        self._left -= 1  # below zero where others wait already: their turns come first
        if self._left < 0:
            await asyncio.sleep(-self._left / self._per_second)
