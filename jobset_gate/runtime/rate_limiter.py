"""How often something may be asked: so many at once, then so many a second."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

MAX_KEYS: Final = 1024
"""Addresses that are told apart; the one that asked least lately is forgotten first."""


class RateLimiter:
    """Holds `burst` at most and gets `rate` more in each second. `now` in seconds."""

    def __init__(self, rate: float, burst: float, now: Callable[[], float]) -> None:
        self._rate, self._burst, self._now = rate, burst, now
        self._left, self._at = burst, now()

    def try_acquire(self) -> float:
        """0 if one could be taken, else the seconds until there is one."""
        now = self._now()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0.0


class KeyedRateLimiter:
    """One for each peer, and one for all of them together."""

    def __init__(self, rate: float, burst: float, now: Callable[[], float], *, together: float = 4) -> None:
        """All together may ask `together` times as often as one."""
        self._rate, self._burst, self._now = rate, burst, now
        self._all = RateLimiter(rate * together, burst * together, now)
        self._peers: OrderedDict[str, RateLimiter] = OrderedDict()

    def try_acquire(self, peer: str) -> float:
        """As a bucket's."""
        bucket = self._peers.get(peer)
        if bucket is None:
            bucket = self._peers[peer] = RateLimiter(self._rate, self._burst, self._now)
        self._peers.move_to_end(peer)
        if len(self._peers) > MAX_KEYS:
            self._peers.popitem(last=False)
        return bucket.try_acquire() or self._all.try_acquire()
