"""The known word that a mistyped one most likely means."""

from collections.abc import Iterable
from typing import Final

MOST_EDITS: Final = 2
"""Letters put in, left out, replaced, or swapped with their neighbours; in a short word fewer: one of three letters."""
SHORTEST_BEGINNING: Final = 5
"""Letters of a word that stands for a longer one."""


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word with the fewest edits, case apart; else the first that begins with `word`; None without either."""
    low = word.casefold()
    folded = {each.casefold(): each for each in known if len(each) >= len(word) - MOST_EDITS}
    if low in folded:
        return folded[low]
    for edits in range(1, min(MOST_EDITS, len(word) // 3) + 1):
        for each, meant in folded.items():
            if len(each) - len(low) <= edits and _within(low, each, edits):
                return meant
    longer = (meant for each, meant in folded.items() if each.startswith(low))
    return next(longer, None) if len(word) >= SHORTEST_BEGINNING else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`: did you mean parallelism?` to end a message with; "" without a suggestion."""
    meant = nearest(word, known)
    return "" if meant is None else f": did you mean {meant}?"


def _within(word: str, other: str, edits: int) -> bool:
    same = 0
    while same < min(len(word), len(other)) and word[same] == other[same]:
        same += 1
    word, other = word[same:], other[same:]
    if not word or not other or not edits:
        return len(word) + len(other) <= edits
    return (
        _within(word[1:], other[1:], edits - 1)
        or _within(word[1:], other, edits - 1)
        or _within(word, other[1:], edits - 1)
        or (word[:2] == other[1::-1] and _within(word[2:], other[2:], edits - 1))
    )
