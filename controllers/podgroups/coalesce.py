"""Calls that can wait a little, and of which one will do for all that comes meanwhile."""

import asyncio
from collections.abc import Callable
from typing import Final

from jobset_gate.podgroups.model import PodGroupKey

LEISURE: Final = 0.8
"""Seconds within which a group is looked at that has come on, but not so far that anything is to be done."""


class Leisure:
    """`call` is made for a key a while after the first time that it was asked for."""

    def __init__(self, call: Callable[[PodGroupKey], None], seconds: float = LEISURE) -> None:
        self._call, self._seconds = call, seconds
        self._timers: dict[PodGroupKey, asyncio.TimerHandle] = {}

    def later(self, key: PodGroupKey) -> None:
        """Some time soon."""
        if key not in self._timers:
            self._timers[key] = asyncio.get_running_loop().call_later(self._seconds, self._fire, key)

    def not_needed(self, key: PodGroupKey) -> None:
        """It is being done already."""
        timer = self._timers.pop(key, None)
        if timer is not None:
            timer.cancel()

    def _fire(self, key: PodGroupKey) -> None:
        del self._timers[key]
        self._call(key)
