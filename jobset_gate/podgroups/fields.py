"""Reads the fields of a group's sources one by one, and collects errors with field paths."""

import re
from collections import Counter
from collections.abc import Mapping
from fractions import Fraction
from typing import Any, Final

import msgspec

from jobset_gate.objects import quantity
from jobset_gate.objects.field_error import CauseType, FieldError, child_path, truncate_value
from jobset_gate.podgroups.model import GangMode

MAX_COUNT: Final = 2**31 - 1
"""Of counts and of seconds: int32, as in the types of the designs."""

MAX_GANGS: Final = 100
"""In one list: every gang of a list is compared with all others."""

MAX_RESOURCES: Final = 64
"""In one list, since parsing a quantity takes time."""

MAX_NAME: Final = 253
"""Characters of an object's name."""

MAX_TEXT: Final = 8192
"""Characters of an annotation, since each pod of a group may have another."""

_TOO_LONG: Final = f"must be at most {MAX_TEXT} characters"
_LABEL: Final = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")
_SUBDOMAIN: Final = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_DIGITS: Final = re.compile(r"[+-]?[0-9]{1,20}")
_RANGE: Final = f"must be a whole number from 1 to {MAX_COUNT}"
_SPAN: Final = f"must be a time with its unit, such as 600s or 1h30m, above 0 and at most {MAX_COUNT}s"
_GANGS: Final = 'must be a JSON list of "namespace/name", such as ["team-a/workers","team-b/servers"]'
_STRING: Final = "must be a string: put it in quotes"
_EMPTY: Final = "names no group: give its name, or leave the key out"
_NAME: Final = "must be a name that an object can have: lower-case letters, digits, - and ."
_QUANTITY: Final = "must be an amount of 0 or more, such as 500m, 5 or 2Gi"


def is_dns_label(text: str) -> bool:
    """Whether a namespace or a start group can have this name."""
    return _LABEL.fullmatch(text) is not None


def is_name(text: str) -> bool:
    """Whether a PodGroup can have this name."""
    return len(text) <= MAX_NAME and _SUBDOMAIN.fullmatch(text) is not None


class FieldReader:
    """One map of a source: labels, annotations or a spec. An absent or invalid value reads as None."""

    def __init__(self, values: Mapping[str, Any], path: str) -> None:
        """`path`: the field path of `values` in their object."""
        self._values = values
        self._path = path
        self.problems: list[FieldError] = []

    def text(self, key: str) -> str | None:
        """A label's or annotation's value."""
        value = self._values.get(key)
        if value is None or (isinstance(value, str) and len(value) <= MAX_TEXT):
            return value
        self._report(key, value, _TOO_LONG if isinstance(value, str) else _STRING)
        return None

    def name(self, key: str, *, free: bool = False) -> str:
        """The name of a group, "" if there is none. `free`: no object has this name, so any text is valid."""
        text = self.text(key)
        if text == "":
            self._report(key, text, _EMPTY)
        elif text and not free and not is_name(text):
            self._report(key, text, _NAME)
        return (text or "")[: MAX_NAME + 1]

    def count(self, key: str) -> int | None:
        """A positive int32 as a string of digits."""
        text = self.text(key)
        return None if text is None else self._positive(key, text, int(text) if _DIGITS.fullmatch(text) else 0)

    def required_count(self, key: str) -> int | None:
        """The same; an absent one is an error."""
        if key not in self._values:
            self._report(key, None, "must be given: it is how many pods the group needs")
        return self.count(key)

    def duration(self, key: str) -> Fraction | None:
        """A positive duration, in seconds."""
        text = self.text(key)
        if text is None:
            return None
        seconds = quantity.parse_duration(text)
        if seconds is not None and 0 < seconds <= MAX_COUNT:
            return seconds
        self._report(key, text, _SPAN)
        return None

    def mode(self, key: str) -> GangMode | None:
        """Strict or NonStrict."""
        text = self.text(key)
        if text is None or text in list(GangMode):
            return None if text is None else GangMode(text)
        self._report(key, text, f"must be {' or '.join(GangMode)}", CauseType.NOT_SUPPORTED)
        return None

    def gangs(self, key: str) -> tuple[str, ...] | None:
        """A JSON list of gangs as `namespace/name`, sorted; an empty text is an empty list."""
        text = self.text(key)
        if text is None:
            return None
        listed = _parse_gang_list(text)
        if listed is None:
            self._report(key, text, _GANGS)
            return None
        if len(listed) > MAX_GANGS:
            self._report(key, text, f"names {len(listed)} gangs: must be at most {MAX_GANGS}")
            return None
        twice = sorted(name for name, times in Counter(listed).items() if times > 1)
        if twice:
            self._report(key, text, f"names {', '.join(twice)} twice", CauseType.DUPLICATE)
            return None
        return tuple(sorted(listed))

    def required_integer(self, key: str) -> int | None:
        """A positive int32 as a number, as in a spec."""
        if self._values.get(key) is None:
            self._report(key, None, f"must be given: a whole number from 1 to {MAX_COUNT}")
        return self._integer(key)

    def seconds(self, key: str) -> Fraction | None:
        """A positive int32 as a number of seconds."""
        number = self._integer(key)
        return None if number is None else Fraction(number)

    def _integer(self, key: str) -> int | None:
        value = self._values.get(key)
        is_integer = isinstance(value, int) and not isinstance(value, bool)
        return None if value is None else self._positive(key, value, value if is_integer else 0)

    def _positive(self, key: str, value: Any, number: int) -> int | None:
        if 1 <= number <= MAX_COUNT:
            return number
        self._report(key, value, _RANGE)
        return None

    def quantities(self, key: str) -> tuple[tuple[str, Fraction], ...] | None:
        """A resource list, sorted."""
        value = self._values.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            self._report(key, value, "must be a map from resources to amounts")
            return None
        if len(value) > MAX_RESOURCES:
            self._report(key, value, f"names {len(value)} resources: must be at most {MAX_RESOURCES}")
            return None
        found: list[tuple[str, Fraction]] = []
        for resource, text in value.items():
            amount = quantity.amount(text)
            if amount is None or amount < 0:
                path = child_path(child_path(self._path, key), resource)
                self.problems.append(FieldError(path, truncate_value(text), _QUANTITY))
            else:
                found.append((resource, amount))
        return tuple(sorted(found))

    def _report(self, key: str, value: Any, message: str, cause: CauseType = CauseType.INVALID) -> None:
        self.problems.append(FieldError(child_path(self._path, key), truncate_value(value), message, cause))


def _parse_gang_list(text: str) -> list[str] | None:
    if not text.strip():
        return []
    try:
        listed = msgspec.json.decode(text, type=list[str])
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        return None
    return listed if all(_is_gang(it) for it in listed) else None


def _is_gang(text: str) -> bool:
    namespace, slash, name = text.partition("/")
    return slash == "/" and is_dns_label(namespace) and is_name(name)
