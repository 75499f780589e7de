"""Answers that are good for a while, and no more of them than there is room for."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class TTLCache(Generic[K, V]):
    """The oldest go first where there are too many. `now` in seconds."""

    def __init__(self, most: int, now: Callable[[], float]) -> None:
        self._most, self._now = most, now
        self._known: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def get(self, key: K) -> tuple[V] | None:
        """In a tuple, since None may be the answer."""
        found = self._known.get(key)
        if found is None:
            return None
        if found[0] <= self._now():
            del self._known[key]
            return None
        return (found[1],)

    def put(self, key: K, value: V, seconds: float) -> None:
        """Good for so long from now."""
        self._known[key] = (self._now() + seconds, value)
        self._known.move_to_end(key)
        while len(self._known) > self._most:
            self._known.popitem(last=False)
