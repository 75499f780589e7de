"""How often something may be asked: so many at once, then so many a second."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

PEERS: Final = 1024
"""Addresses that are told apart; the one that asked least lately is forgotten first."""


class Bucket:
    """Holds `burst` at most and gets `rate` more in each second. `now` in seconds."""

    def __init__(self, rate: float, burst: float, now: Callable[[], float]) -> None:
        self._rate, self._burst, self._now = rate, burst, now
        self._left, self._at = burst, now()

    def take(self) -> float:
        """0 if one could be taken, else the seconds until there is one."""
        now = self._now()
        self._left = min(self._burst, self._left + (now - self._at) * self._rate)
        self._at = now
        if self._left < 1:
            return (1 - self._left) / self._rate
        self._left -= 1
        return 0.0


class Buckets:
    """One for each peer, and one for all of them together."""

    def __init__(self, rate: float, burst: float, now: Callable[[], float], *, together: float = 4) -> None:
        """All together may ask `together` times as often as one."""
        self._rate, self._burst, self._now = rate, burst, now
        self._all = Bucket(rate * together, burst * together, now)
        self._peers: OrderedDict[str, Bucket] = OrderedDict()

    def take(self, peer: str) -> float:
        """As a bucket's."""
        bucket = self._peers.get(peer)
        if bucket is None:
            bucket = self._peers[peer] = Bucket(self._rate, self._burst, self._now)
        self._peers.move_to_end(peer)
        if len(self._peers) > PEERS:
            self._peers.popitem(last=False)
        return bucket.take() or self._all.take()
