"""Passes keys on to a queue only while somebody works on it.

Informers run on a standby as well. Its queue would keep every key that was ever told, and whoever takes over after
weeks would first go through all the gangs that came and went meanwhile, while those that are there wait.
"""

from collections.abc import Callable, Hashable, Iterable
from typing import Generic, TypeVar

from jobset_gate.runtime.workqueue import WorkQueue

K = TypeVar("K", bound=Hashable)


class LeaderGatedQueue(Generic[K]):
    """Stands before a queue. What comes before `begin` is dropped: all that is there then is looked at anyway."""

    def __init__(self, queue: WorkQueue[K]) -> None:
        self._queue = queue
        self._begun = False

    def add(self, key: K) -> None:
        """As the queue's."""
        if self._begun:
            self._queue.add(key)

    def add_after(self, key: K, seconds: float) -> None:
        """As the queue's."""
        if self._begun:
            self._queue.add_after(key, seconds)

    def start(self, keys: Callable[[], Iterable[K]]) -> None:
        """From now on there are workers; `keys` are all that there are for them to look at."""
        self._begun = True
        for key in keys():
            self._queue.add(key)
