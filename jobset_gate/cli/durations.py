"""Lengths of time as kubectl takes them: 30s, 5m, 1h30m, 500ms; below zero for very long."""

import re
from typing import Final

import typer

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_PART: Final = re.compile(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m|h)")
_WHOLE: Final = re.compile(rf"-?(?:{_PART.pattern})+")
WEEK: Final = 7 * 24 * 3600.0
"""What less than nothing means."""


def parse_duration(text: str | float) -> float:
    """Raises typer.BadParameter for what is none; 0 needs no unit. Takes a number as it is: a default."""
    if isinstance(text, int | float):
        return float(text)
    said = text.strip()
    if said in ("0", "-0"):
        return 0.0
    if said == "-1" or (said.startswith("-") and _WHOLE.fullmatch(said)):
        return WEEK
    if not _WHOLE.fullmatch(said):
        raise typer.BadParameter(f"{text!r} is no length of time such as 30s, 5m or 1h30m")
    return sum(float(number) * _UNITS[unit] for number, unit in _PART.findall(said))
