"""Whom the gate stream has told a verdict, since when, and whose end of the line has shown that it arrived.

Telling is only writing: a line whose other end is cut off takes everything. So whoever does not confirm is struck off,
and is reached by its annotation like those without a stream.
"""

from collections.abc import Callable

from jobset_gate.barrier.model import GangKey
from jobset_gate.runtime.clock import monotonic

KEEP_SECONDS = 60.0
"""Seconds for which it is remembered; who has not acted by then was not reached."""


class DeliveryLog(dict[tuple[GangKey, str], float]):
    """Gangs and UIDs of their pods, and when each was first told, by `clock`.

    A dict, since each pass asks it of each pod. By gang too: whoever names another gang's pod at a gang of his own
    says nothing of that pod.
    """

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        super().__init__()
        self._clock = clock
        self._received: set[tuple[GangKey, str]] = set()

    def record_sent(self, gang: GangKey, pod: str) -> None:
        """It is being told, or told again."""
        self.setdefault((gang, pod), self._clock())

    def record_received(self, gang: GangKey, pod: str) -> None:
        """It has taken what it was told."""
        self.record_sent(gang, pod)
        self._received.add((gang, pod))

    def discard_unconfirmed(self, gang: GangKey, pod: str) -> bool:
        """One of its lines ended without showing that anything arrived. True if it counts as told no more."""
        return (gang, pod) not in self._received and self.pop((gang, pod), None) is not None

    def expire_deliveries(self) -> None:
        """Forgets whom it has told a while ago."""
        before = self._clock() - KEEP_SECONDS
        while self:
            oldest = next(iter(self))
            if self[oldest] > before:
                return
            del self[oldest]
            self._received.discard(oldest)
