"""Back-off after failures, and token buckets: a burst at once, then so many per second."""

import asyncio
import random
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from jobset_gate.runtime.clock import monotonic as loop_time

MAX_KEYS: Final = 1024
"""Keys with a bucket of their own; the least recently used one is dropped first."""


def exponential(failures: int, base: float, cap: float) -> float:
    """Seconds to wait after `failures` failures in a row before this one: base, 2 base, 4 base ... up to `cap`."""
    return min(cap, base * 2.0 ** min(failures, 60))


@dataclass(slots=True)
class Backoff:
    """The back-off of one subject; each wait is shortened at random by up to 40 % so that many clients spread out.

    With a base of 1 s a failure that persists is met with at most five attempts in its first ten seconds:
    at the earliest at 0, 0.6, 1.8, 4.2 and 9.0 s, the next one at 18.6 s.
    """

    base: float = 1.0
    cap: float = 30.0
    rng: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def next(self) -> float:
        """Seconds to wait now; counts one failure more."""
        ceiling = exponential(self.failures, self.base, self.cap)
        self.failures += 1
        return ceiling * self.rng.uniform(0.6, 1.0)

    def reset(self) -> None:
        """After a success: the next failure is the first one."""
        self.failures = 0


class RateLimiter:
    """Holds `burst` tokens at most and gets `rate` more per second. `monotonic` in seconds."""

    def __init__(self, rate: float, burst: float, monotonic: Callable[[], float] = loop_time) -> None:
        self._rate, self._burst, self._monotonic = rate, burst, monotonic
        self._tokens, self._refilled_at = burst, monotonic()

    def try_acquire(self) -> float:
        """0 if a token was taken, else the seconds until there is one."""
        self._refill()
        if self._tokens < 1:
            return (1 - self._tokens) / self._rate
        self._tokens -= 1
        return 0.0

    async def acquire(self) -> None:
        """Takes a token, waiting for it if need be; callers get theirs in the order in which they asked."""
        self._refill()
        self._tokens -= 1  # below zero: reserved by callers that wait
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens / self._rate)

    def _refill(self) -> None:
        now = self._monotonic()
        self._tokens = min(self._burst, self._tokens + (now - self._refilled_at) * self._rate)
        self._refilled_at = now


class KeyedRateLimiter:
    """A bucket for each key (a client's address, say), and one for all of them, `shared` times as large."""

    def __init__(self, rate: float, burst: float, monotonic: Callable[[], float], *, shared: float = 4) -> None:
        self._rate, self._burst, self._monotonic = rate, burst, monotonic
        self._shared = RateLimiter(rate * shared, burst * shared, monotonic)
        self._keys: OrderedDict[str, RateLimiter] = OrderedDict()

    def try_acquire(self, key: str) -> float:
        """0 if a token was taken, else the seconds until there is one."""
        limiter = self._keys.get(key)
        if limiter is None:
            limiter = self._keys[key] = RateLimiter(self._rate, self._burst, self._monotonic)
        self._keys.move_to_end(key)
        if len(self._keys) > MAX_KEYS:
            self._keys.popitem(last=False)
        return limiter.try_acquire() or self._shared.try_acquire()
