"""Whom the gate stream has told a verdict, since when, and whose end of the line has shown that it arrived.

Telling is only writing: a line whose other end is cut off takes everything. So whoever does not confirm is struck off,
and is reached by its annotation like those without a stream.
"""

from collections.abc import Callable

from controllers.keys import Key
from controllers.ticks import ticks

TOLD_FOR = 60.0
"""Seconds for which it is remembered; who has not acted by then was not reached."""


class Told(dict[tuple[Key, str], float]):
    """Gangs and UIDs of their pods, and when each was first told, by `clock`.

    A dict, since each pass asks it of each pod. By gang too: whoever names another gang's pod at a gang of his own
    says nothing of that pod.
    """

    def __init__(self, clock: Callable[[], float] = ticks) -> None:
        super().__init__()
        self._clock = clock
        self._heard: set[tuple[Key, str]] = set()

    def tell(self, gang: Key, pod: str) -> None:
        """It is being told, or told again."""
        self.setdefault((gang, pod), self._clock())

    def hear(self, gang: Key, pod: str) -> None:
        """It has taken what it was told."""
        self.tell(gang, pod)
        self._heard.add((gang, pod))

    def doubt(self, gang: Key, pod: str) -> bool:
        """One of its lines ended without showing that anything arrived. True if it counts as told no more."""
        return (gang, pod) not in self._heard and self.pop((gang, pod), None) is not None

    def tidy(self) -> None:
        """Forgets whom it has told a while ago."""
        before = self._clock() - TOLD_FOR
        while self:
            oldest = next(iter(self))
            if self[oldest] > before:
                return
            del self[oldest]
            self._heard.discard(oldest)
