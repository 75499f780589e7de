"""One thing that is wrong with a JobSet: where, what was found, what is allowed."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import msgspec

LONGEST_VALUE = 120
"""Characters of a value in a message."""

KEPT_VALUE = 1000
"""Characters of one that are kept."""


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


def _json(value: Any) -> str:
    try:
        return msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError):
        return f"<{type(value).__name__}>"
