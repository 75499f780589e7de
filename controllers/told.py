"""Whom the gate stream has told a verdict, since when, and whose end of the line has shown that it arrived.

Telling is only writing: a line whose other end is cut off takes everything. So whoever does not confirm is struck off,
and is reached by its annotation like those without a stream.
"""

from collections.abc import Callable, Iterator, Mapping

from controllers.ticks import ticks

TOLD_FOR = 60.0
"""Seconds for which it is remembered; who has not acted by then was not reached."""


class Told(Mapping[str, float]):
    """UIDs of pods, and when each was first told, in seconds of `clock`."""

    def __init__(self, clock: Callable[[], float] = ticks) -> None:
        self._clock = clock
        self._since: dict[str, float] = {}
        self._heard: set[str] = set()

    def tell(self, pod: str) -> None:
        """It is being told; again, if it was before."""
        self._since.setdefault(pod, self._clock())

    def hear(self, pod: str) -> None:
        """It has taken what it was told."""
        self.tell(pod)
        self._heard.add(pod)

    def doubt(self, pod: str) -> bool:
        """One of its lines ended without showing that anything arrived. True if it counts as told no more."""
        return pod not in self._heard and self._since.pop(pod, None) is not None

    def tidy(self) -> None:
        """Forgets whom it has told a while ago."""
        before = self._clock() - TOLD_FOR
        while self._since:
            oldest = next(iter(self._since))
            if self._since[oldest] > before:
                return
            del self._since[oldest]
            self._heard.discard(oldest)

    def __contains__(self, pod: object) -> bool:
        return pod in self._since

    def __getitem__(self, pod: str) -> float:
        return self._since[pod]

    def __iter__(self) -> Iterator[str]:
        return iter(self._since)

    def __len__(self) -> int:
        return len(self._since)
