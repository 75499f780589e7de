"""Groups as a table, in the style of kubectl."""

from collections.abc import Sequence

from jobset_gate.cli.printers.columns import aligned
from jobset_gate.objects import terminal_text
from jobset_gate.podgroups.status import GroupStatus

_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_AGES = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
)
"""Below so many seconds: the unit and its letter, and the part of it that is told, too."""


def table(reports: Sequence[GroupStatus], now: float, *, wide: bool, namespaces: bool, headers: bool) -> str:
    """One line for each group, under headers if they are wanted; "" without groups."""
    rows = [row(it, now, wide=wide, namespaces=namespaces) for it in reports]
    if not rows:
        return ""
    lines = [titles(wide=wide, namespaces=namespaces), *rows] if headers else rows
    return "\n".join(aligned(lines)) + "\n"


def titles(*, wide: bool, namespaces: bool) -> list[str]:
    """The headers."""
    found = ["NAMESPACE", "NAME", "WAY", "BOUND/MINIMUM", "PHASE", "REASON", "AGE"]
    found += ["MEMBERS", "RUNNING", "MESSAGE"] if wide else []
    return found if namespaces else found[1:]


def age(seconds: float) -> str:
    """As kubectl has it: the larger the time, the coarser."""
    whole = max(0, int(seconds))
    for limit, unit, name, part, rest in _AGES:
        if whole < limit:
            left = whole % unit // part if part else 0
            return f"{whole // unit}{name}" + (f"{left}{rest}" if left else "")
    return f"{whole // _DAY}d"


def ways(report: GroupStatus) -> str:
    """How its pods say it; whose it is while there are none."""
    return ",".join(report.formats) or str(report.key.design)


def name(report: GroupStatus) -> str:
    """Its name; pods that name a group by an empty value have none."""
    return report.key.name or "<none>"


def row(report: GroupStatus, now: float, *, wide: bool, namespaces: bool) -> list[str]:
    """Its cells, as `titles` has them."""
    counts = report.counts
    cells = [
        report.key.namespace,
        name(report),
        ways(report),
        f"{counts.bound}/{counts.minimum or '?'}",
        str(report.phase),
        report.reason,
        age(now - report.created) if report.created else "<unknown>",
    ]
    cells += [str(counts.present), str(counts.running), terminal_text.line(report.message)] if wide else []
    return cells if namespaces else cells[1:]
