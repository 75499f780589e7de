"""Quantities (`1000m` equals `1`, `1024Mi` equals `1Gi`), and semantic equality of objects as the API server has it."""

import re
from fractions import Fraction
from typing import Any, Final

MAPS: Final = ("requests", "limits")
"""The members whose values are amounts."""
_TEXT: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?")
_DECIMAL: Final = {letter: Fraction(10) ** (3 * power) for power, letter in enumerate("num kMGTPE", start=-3)}
_BINARY: Final = {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}


def amount(value: Any) -> Fraction | None:
    """The number of a quantity; None for any other value, and for one of more than 64 characters."""
    if isinstance(value, bool) or not isinstance(value, str | int | float) or len(text := str(value)) > 64:
        return None
    found = _TEXT.fullmatch(text)
    if found is None:
        return None
    number, unit = Fraction(found[1]), found[2] or " "
    if unit in _DECIMAL:
        return number * _DECIMAL[unit]
    return number * (_BINARY[unit] if unit in _BINARY else Fraction(10) ** int(unit[1:]))


def same(one: Any, other: Any) -> bool:
    """Whether both are the same amount."""
    return one == other or ((said := amount(one)) is not None and said == amount(other))


def semantically_equal(one: Any, other: Any) -> bool:
    """Whether two pieces of an object mean the same to the API server, where empty and absent are one.

    A typed client that reads and writes an object drops empty members or adds them.
    """
    return bool(one == other or _normalized(one) == _normalized(other))


def _normalized(value: Any) -> Any:
    if isinstance(value, dict):
        members = {
            key: _normalized_quantities(member) if key in MAPS else _normalized(member) for key, member in value.items()
        }
        return {key: member for key, member in members.items() if member not in (None, "", {}, [])}
    if isinstance(value, list):
        return [_normalized(entry) for entry in value]
    return value


def _normalized_quantities(value: Any) -> Any:
    """JobSet's webhook, like every typed client, writes amounts in the canonical form."""
    if not isinstance(value, dict):
        return _normalized(value)
    members = {key: amount(member) for key, member in value.items()}
    return {key: _normalized(value[key]) if number is None else number for key, number in members.items()}
