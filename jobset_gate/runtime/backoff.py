"""Exponential back-off."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


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
