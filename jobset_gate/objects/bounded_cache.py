"""What many objects of a cluster have alike is kept once, in tables that never weigh more than a bound.

Tenants choose such texts and templates, and how often they are new. Python's own tables have no bound in bytes:
`lru_cache` counts entries, and what `sys.intern` has seen in Python 3.12 stays for the life of the process.
"""

from sys import getsizeof
from typing import Final, TypeVar

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
