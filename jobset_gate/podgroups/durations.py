"""Spans of time as Koordinator's annotations have them: Go's `3600s`, `1h30m`, `1.5h`."""

import re
from fractions import Fraction
from typing import Final

_NUMBER: Final = r"(?:[0-9]{1,18}\.?[0-9]{0,18}|\.[0-9]{1,18})"
_PART: Final = re.compile(rf"({_NUMBER})(ns|us|µs|μs|ms|s|m|h)")
_WHOLE: Final = re.compile(rf"(-|\+)?((?:{_NUMBER}(?:ns|us|µs|μs|ms|s|m|h))+|0)")
_UNITS: Final = {
    "ns": Fraction(1, 10**9),
    "us": Fraction(1, 10**6),
    "µs": Fraction(1, 10**6),
    "μs": Fraction(1, 10**6),
    "ms": Fraction(1, 1000),
    "s": Fraction(1),
    "m": Fraction(60),
    "h": Fraction(3600),
}
MAX_DURATION_TEXT: Final = 100
"""Nobody means more, and a long one would take long."""


def parse_duration(text: str) -> Fraction | None:
    """The span in seconds, negative ones too; None for what Go does not read, such as a number without a unit."""
    found = _WHOLE.fullmatch(text) if len(text) <= MAX_DURATION_TEXT else None
    if found is None:
        return None
    sign = -1 if found[1] == "-" else 1
    return sign * sum((Fraction(number) * _UNITS[unit] for number, unit in _PART.findall(found[2])), Fraction(0))
