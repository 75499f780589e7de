"""Durations as Go writes them: in annotations of pod groups, and in options of the command line."""

import re
from fractions import Fraction
from typing import Final

MAX_CHARACTERS: Final = 100

_NUMBER: Final = r"(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})"
_PART: Final = re.compile(rf"({_NUMBER})(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"(-|\+)?((?:{_PART.pattern})+|0)")
_UNITS: Final = {"s": Fraction(1), "m": Fraction(60), "h": Fraction(3600), "ms": Fraction(1, 1000)} | {
    "ns": Fraction(1, 10**9),
    **dict.fromkeys(("us", "µs", "μs"), Fraction(1, 10**6)),
}


def parse_duration(text: str) -> Fraction | None:
    """Seconds of a duration (`3600s`, `1h30m`, `-1.5h`, `0`); None for any other text, such as `5`."""
    found = _WHOLE.fullmatch(text) if len(text) <= MAX_CHARACTERS else None
    if found is None:
        return None
    sign = -1 if found[1] == "-" else 1
    return sign * sum((Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(found[2])), Fraction(0))
