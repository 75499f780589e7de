"""How far a cache may be behind the API server."""

from __future__ import annotations

import math
from collections.abc import Callable

from jobset_gate.runtime.clock import monotonic


class Staleness:
    """A cache has all that was written before its last list began, and before the write that its latest event reports.

    A watch keeps the order of writes, so that holds whenever the event arrives. That an event arrives proves nothing:
    a watch that hung brings old events first, and the cache is old until the last of them. `clock` is Unix time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._current_at = -math.inf
        self._is_complete = True

    @property
    def seconds(self) -> float:
        """Older writes are in the cache; infinite before the first list."""
        return monotonic() - self._current_at

    def observe_list(self, start: float) -> None:
        """The cache equals a list that began then, on the monotonic clock."""
        self._current_at, self._is_complete = max(self._current_at, start), True

    def observe_event(self, written_at: float) -> None:
        """The cache has the event of an object that the API server wrote then, in Unix time."""
        if self._is_complete:
            self._current_at = max(self._current_at, monotonic() - max(0.0, self._clock() - written_at))

    def observe_loss(self) -> None:
        """An event was lost: until the next list, later ones say nothing of earlier writes."""
        self._is_complete = False
