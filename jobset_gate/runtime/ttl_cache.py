"""A cache whose entries expire, with a bound on their number."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class TTLCache(Generic[K, V]):
    """The entry written longest ago is dropped first when there are too many. `monotonic` in seconds."""

    def __init__(self, max_entries: int, monotonic: Callable[[], float]) -> None:
        self._max_entries, self._monotonic = max_entries, monotonic
        self._entries: OrderedDict[K, tuple[float, V]] = OrderedDict()

    def __len__(self) -> int:
        """Entries, expired ones included."""
        return len(self._entries)

    def get(self, key: K) -> tuple[V] | None:
        """The value in a tuple, since None may be a value."""
        found = self._entries.get(key)
        if found is None:
            return None
        if found[0] <= self._monotonic():
            del self._entries[key]
            return None
        return (found[1],)

    def put(self, key: K, value: V, seconds: float) -> None:
        """The value expires after so many seconds."""
        self._entries[key] = (self._monotonic() + seconds, value)
        self._entries.move_to_end(key)
        while len(self._entries) > self._max_entries:
            self._entries.popitem(last=False)

    def drop(self, key: K) -> None:
        """If it is there."""
        self._entries.pop(key, None)
