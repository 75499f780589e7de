"""When many groups are being placed at once, words for people wait (G5).

The scheduler places pods as fast as the API server takes its writes, and ours would stand in the same line.
"""

from collections.abc import Callable
from typing import Final

from jobset_gate.groups.model import Key

MANY: Final = 8
"""Groups that are being placed at once, from which on it is a rush; it ends when none is left."""

LONGEST: Final = 60.0
"""Seconds from its decision for which a group counts as being placed, and for which anything is put off. Two cores with
all of a control plane on them place ten thousand pods in that time."""


class Rush:
    """Knows who is being placed. `wake`: what was put off for this group can be done now."""

    def __init__(self, now: Callable[[], float], wake: Callable[[Key], None]) -> None:
        self._now, self._wake = now, wake
        self._placing: dict[Key, float] = {}
        """Until when at most."""
        self._on = False
        self._put_off: dict[Key, float] = {}
        """Since when."""

    def placing(self, key: Key, since: float) -> None:
        """This group was opened then, and its minimum is not bound yet."""
        if since + LONGEST <= self._now():
            self.placed(key)
            return
        self._placing[key] = since + LONGEST
        self._on = self._on or len(self._placing) >= MANY

    def placed(self, key: Key) -> None:
        """It is bound, or is not placed any more."""
        if self._placing.pop(key, None) is not None and not self._placing:
            self._end()

    def wait(self, key: Key) -> float:
        """Seconds for which nothing is to be said of a group, after which to ask again; 0: say it now. It is woken when
        the rush is over.
        """
        if not self._on:
            return 0.0
        now = self._now()
        if all(until <= now for until in self._placing.values()):
            self._end()
            return 0.0
        return max(0.0, self._put_off.setdefault(key, now) + LONGEST - now)

    def forget(self, key: Key) -> None:
        """Nothing is left of the group."""
        self.placed(key)
        self._put_off.pop(key, None)

    def _end(self) -> None:
        self._on, self._placing = False, {}
        waiting, self._put_off = set(self._put_off), {}
        for key in waiting:
            self._wake(key)
