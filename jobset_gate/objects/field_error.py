"""One thing that is wrong with an object: where, what was found, what is allowed, and what was most likely meant."""

from collections.abc import Iterable
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum
from typing import Any

import msgspec

LONGEST_VALUE = 120
"""Characters of a value in a message."""

KEPT_VALUE = 1000
"""Characters of one that are kept."""

SIMILARITY = 0.75
"""Of a mistyped word and the known one, 1 for equal words."""

SHORTEST_BEGINNING = 5
"""Letters of a word that stands for a longer one."""


class CauseType(StrEnum):
    """The kinds of causes that an API server's Status knows, as far as we use them."""

    INVALID = "FieldValueInvalid"
    TYPE_INVALID = "FieldValueTypeInvalid"
    REQUIRED = "FieldValueRequired"
    FORBIDDEN = "FieldValueForbidden"
    DUPLICATE = "FieldValueDuplicate"
    NOT_FOUND = "FieldValueNotFound"
    NOT_SUPPORTED = "FieldValueNotSupported"


@dataclass(frozen=True, slots=True)
class FieldError:
    """A rejected value. `path` is a field path as kubectl prints them: `spec.replicatedJobs[0].replicas`."""

    path: str
    value: Any
    message: str
    cause_type: CauseType = CauseType.INVALID

    def __hash__(self) -> int:
        """Of any value, also of a list or an object."""
        return hash((self.path, self.message))

    def __str__(self) -> str:
        """`<path>: <value>: <message>`."""
        return f"{self.path}: {format_value(self.value)}: {self.message}"


def format_value(value: Any) -> str:
    """A value as JSON on one line, cut where it gets long."""
    text = _json(value)
    return text if len(text) <= LONGEST_VALUE else text[: LONGEST_VALUE - 3] + "..."


def truncate_value(value: Any) -> Any:
    """A value as it is where it is short, else what is shown of it: what is kept of each of many pods has an end."""
    if isinstance(value, str):
        return value[:KEPT_VALUE]
    return format_value(value) if isinstance(value, dict | list) and len(_json(value)) > KEPT_VALUE else value


def child_path(path: str, key: str | int) -> str:
    """The path of a member: `.name` for a plain key, `[0]` for an index, `[a.b/c]` for a key with dots or slashes."""
    if isinstance(key, int):
        return f"{path}[{key}]"
    plain = key.replace("_", "").replace("-", "").isalnum() and key.isascii()
    if not path:
        return key
    return f"{path}.{key}" if plain else f"{path}[{key}]"


def annotation_path(key: str) -> str:
    return child_path("metadata.annotations", key)


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like this one, case apart; else the first that begins with it; None without either."""
    low = word.casefold()
    folded = {each.casefold(): each for each in known if len(word) < 2 * len(each)}
    if not folded:
        return None  # a tenant chose the word, and it may be of any length
    found = get_close_matches(low, folded, n=1, cutoff=SIMILARITY)
    if not found and len(word) >= SHORTEST_BEGINNING:
        found = [each for each in folded if each.startswith(low)]
    return folded[found[0]] if found else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`: did you mean parallelism?` to end a message with; "" without a suggestion."""
    meant = nearest(word, known)
    return "" if meant is None else f": did you mean {meant}?"


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return f"<{type(value).__name__}>"
