"""How long to wait after the n-th failure in a row."""

from __future__ import annotations

import random
from dataclasses import dataclass, field


@dataclass(slots=True)
class Backoff:
    """base, 2 base, 4 base ... up to `cap` seconds, each shortened at random by up to 40 % so that a crowd spreads out.

    With a base of 1 s a failure that persists is met with at most five attempts in its first ten seconds:
    at the earliest at 0, 0.6, 1.8, 4.2 and 9.0 s, the next one at 18.6 s.
    """

    base: float = 1.0
    cap: float = 30.0
    rng: random.Random = field(default_factory=random.Random)
    failures: int = 0

    def next(self) -> float:
        """Seconds to wait now; counts one failure more."""
        ceiling = min(self.cap, self.base * 2.0 ** min(self.failures, 60))
        self.failures += 1
        return ceiling * self.rng.uniform(0.6, 1.0)

    def reset(self) -> None:
        """It went well."""
        self.failures = 0
