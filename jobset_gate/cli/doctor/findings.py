"""The word for what a check has found."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class FindingLevel(StrEnum):
    """How bad it is."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"
    UNKNOWN = "unknown"
    """It could not be read: a right is missing, or the API does not show it."""


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    level: FindingLevel
    what: str
    why: str = ""
    remedy: str = ""


def ok(what: str, why: str = "") -> Finding:
    """As it should be."""
    return Finding(FindingLevel.OK, what, why)


def warning(what: str, why: str, remedy: str) -> Finding:
    """It works, and not as well as it could."""
    return Finding(FindingLevel.WARNING, what, why, remedy)


def error(what: str, why: str, remedy: str) -> Finding:
    """Gangs are not held, or not released."""
    return Finding(FindingLevel.ERROR, what, why, remedy)


def unknown(what: str, why: str, remedy: str) -> Finding:
    """Not seen."""
    return Finding(FindingLevel.UNKNOWN, what, why, remedy)


def healthy(findings: Iterable[Finding]) -> bool:
    """Whether nothing is worse than a warning."""
    return all(it.level is not FindingLevel.ERROR for it in findings)
