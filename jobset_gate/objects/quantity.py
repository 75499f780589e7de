"""Quantities (`1000m` equals `1`) and semantic equality, as the API server has them, and durations, as Go has them."""

import re
from fractions import Fraction
from typing import Any, Final

MAPS: Final = ("requests", "limits")
"""The members whose values are amounts."""
_TEXT: Final = re.compile(r"([+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+))([numkMGTPE]|[KMGTPE]i|[eE][+-]?[0-9]{1,2})?")
_DECIMAL: Final = {letter: Fraction(10) ** (3 * power) for power, letter in enumerate("num kMGTPE", start=-3)}
_BINARY: Final = {f"{letter}i": Fraction(1024) ** power for power, letter in enumerate("KMGTPE", start=1)}

_LONGEST_DURATION: Final = 100

_NUMBER: Final = r"(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})"
_PART: Final = re.compile(rf"({_NUMBER})(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"(-|\+)?((?:{_PART.pattern})+|0)")
_UNITS: Final = {"s": Fraction(1), "m": Fraction(60), "h": Fraction(3600), "ms": Fraction(1, 1000)} | {
    "ns": Fraction(1, 10**9),
    **dict.fromkeys(("us", "µs", "μs"), Fraction(1, 10**6)),
}


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


def parse_duration(text: str) -> Fraction | None:
    """Seconds of a duration (`3600s`, `1h30m`, `-1.5h`, `0`); None for any other text, such as `5`."""
    found = _WHOLE.fullmatch(text) if len(text) <= _LONGEST_DURATION else None
    if found is None:
        return None
    sign = -1 if found[1] == "-" else 1
    return sign * sum((Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(found[2])), Fraction(0))
