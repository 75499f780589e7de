"""Caches with a bound: by weight for what many objects of a cluster have alike, by number and time for answers.

Tenants choose such texts and templates, and how often they are new. Python's own tables have no bound in bytes:
`lru_cache` counts entries, and what `sys.intern` has seen in Python 3.12 stays for the life of the process.
"""

from collections import OrderedDict
from collections.abc import Callable
from sys import getsizeof
from typing import Final, Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")

_TEXTS_BYTES: Final = 4 * 1024 * 1024
"""Some 30,000 names and UIDs: what the pods of as many Jobs share."""

_LONGEST_TEXT: Final = 2048
"""Characters of a text that is worth a place."""


class BoundedCache(dict[K, V]):
    """Values by key. When what was kept weighs more than `most` bytes all are forgotten at once.

    That needs no order of use: references to a value stay valid, and a missing value is made again.
    """

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most, self._weight = most, 0

    def put(self, key: K, value: V, weight: int) -> V:
        """Gives the value back."""
        self._weight += weight
        if self._weight > self._most:
            self.clear()
            self._weight = weight
        self[key] = value
        return value


_texts: Final = BoundedCache[str, str](_TEXTS_BYTES)


def intern_text(text: str) -> str:
    """An equal text: the same object for equal ones, as long as the table has room."""
    known = _texts.get(text)
    if known is not None:
        return known
    return text if len(text) > _LONGEST_TEXT else _texts.put(text, text, getsizeof(text))


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
