"""What a plain scalar of YAML means to kubectl.

kubectl reads YAML 1.1 in the dialect of go-yaml 2: `on` and `y` are booleans, `0777` is octal, `1e3` is a number, but
`12:30` and `2001-01-01` are strings. Read otherwise, a manifest would be judged that the cluster never sees.
"""

import math
import re
from typing import Final

Scalar = None | bool | int | float | str

_WORDS: Final[dict[str, Scalar]] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **{word: True for low in ("y", "yes", "true", "on") for word in (low, low.capitalize(), low.upper())},
    **{word: False for low in ("n", "no", "false", "off") for word in (low, low.capitalize(), low.upper())},
    **dict.fromkeys((".nan", ".NaN", ".NAN"), math.nan),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), math.inf),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), -math.inf),
}
_INTEGER: Final = re.compile(r"([-+]?)(?:0[xX]([0-9a-fA-F]+)|0[bB]([01]+)|0[oO]?([0-7]+)|(0|[1-9][0-9]*))")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_BASES: Final = (16, 2, 8, 10)
_MOST_DIGITS: Final = 64
"""Of an integer of 64 bits, in base 2; Python reads no decimal one of more than 4,300."""
_SMALLEST, _LARGEST = -(2**63), 2**64 - 1
_LONGEST_INTEGER: Final = 1e21
"""Below this a float without a fraction is written to JSON without a point, so it arrives as an integer."""


def parse_scalar(text: str) -> Scalar:
    """The value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if not text[0].isascii() or text[0] not in "+-.0123456789":
        return text
    plain = text.replace("_", "") if text[0] != "." else text
    whole = _INTEGER.fullmatch(plain)
    if whole is not None:
        sign, *digits = whole.groups()
        part, base = next((part, base) for part, base in zip(digits, _BASES, strict=True) if part is not None)
        if len(part.lstrip("0")) <= _MOST_DIGITS and _SMALLEST <= (value := int(sign + part, base)) <= _LARGEST:
            return value
    if _FLOAT.fullmatch(plain):
        return number(float(plain))
    return text


def number(value: float) -> int | float:
    """A float as it arrives at the API server."""
    return int(value) if value.is_integer() and abs(value) < _LONGEST_INTEGER else value
