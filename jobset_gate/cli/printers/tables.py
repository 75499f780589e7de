"""The columns of `get`: gated JobSets and pod groups in the same words, and pod groups in those of their own."""

from collections import Counter
from typing import Final

from jobset_gate.barrier import messages
from jobset_gate.explain.model import GIVEN_UP_STATES, Explanation
from jobset_gate.explain.text import format_duration
from jobset_gate.objects import terminal_text
from jobset_gate.podgroups.status import GroupStatus

NOTHING: Final = "-"
_UNKNOWN: Final = "<unknown>"
_MINUTE, _HOUR, _DAY = 60, 3600, 86_400
_AGES: Final = (
    (2 * _MINUTE, 1, "s", 0, ""),
    (10 * _MINUTE, _MINUTE, "m", 1, "s"),
    (3 * _HOUR, _MINUTE, "m", 0, ""),
    (8 * _HOUR, _HOUR, "h", _MINUTE, "m"),
    (2 * _DAY, _HOUR, "h", 0, ""),
    (8 * _DAY, _DAY, "d", _HOUR, "h"),
)
"""Below so many seconds: the unit and its letter, and the smaller unit that follows."""


def gang_cells(it: Explanation, created: float, *, namespaces: bool, kinds: bool, wide: bool) -> dict[str, str]:
    """By title, as far as they are shown. `created` in seconds, 0 if it is not known."""
    cells = {"NAMESPACE": it.namespace} if namespaces else {}
    cells |= {"KIND": it.kind, "SOURCE": it.source or NOTHING} if kinds else {}
    cells |= {
        "NAME": it.name,
        "STATE": str(it.state),
        "STARTED": f"{'?' if it.started is None else it.started}/{it.expected or '?'}",
        "LEFT": NOTHING if it.left is None else format_duration(it.left),
        "MISSING": _missing(it),
        "AGE": _since(created, it.now),
    }
    if wide:
        if kinds:
            cells["OWNER"] = f"{it.owner.kind}/{it.owner.name}" if it.owner is not None else NOTHING
        message = it.message or next((one.message for one in it.missing if one.message), "")
        cells["TIMEOUT"] = NOTHING if it.timeout is None else format_duration(it.timeout)
        cells["MESSAGE"] = terminal_text.line(message) or NOTHING
    return cells


def pod_group_cells(status: GroupStatus, now: float, *, namespaces: bool, wide: bool) -> dict[str, str]:
    """By title, as far as they are shown."""
    counts = status.counts
    cells = {"NAMESPACE": status.key.namespace} if namespaces else {}
    cells |= {
        "NAME": group_name(status),
        "WAY": ",".join(status.formats) or str(status.key.flavor),
        "BOUND/MINIMUM": f"{counts.bound}/{counts.minimum or '?'}",
        "PHASE": str(status.phase),
        "REASON": status.reason,
        "AGE": _since(status.created, now),
    }
    if wide:
        cells["MEMBERS"], cells["RUNNING"] = str(counts.present), str(counts.running)
        cells["MESSAGE"] = terminal_text.line(status.message)
    return cells


def group_name(status: GroupStatus) -> str:
    """Pods that name a group by an empty value have none."""
    return status.key.name or "<none>"


def age(seconds: float) -> str:
    """As kubectl has it: the larger the time, the coarser."""
    whole = max(0, int(seconds))
    for limit, unit, letter, part, rest in _AGES:
        if whole < limit:
            left = whole % unit // part if part else 0
            return f"{whole // unit}{letter}" + (f"{left}{rest}" if left else "")
    return f"{whole // _DAY}d"


def _since(created: float, now: float) -> str:
    return age(now - created) if created else _UNKNOWN


def _missing(it: Explanation) -> str:
    """`2 Unscheduled,1 ImagePull`: without blanks after commas, so that it stays one column."""
    counts: Counter[str] = messages.parse_missing(it.message) if it.state in GIVEN_UP_STATES else Counter()
    for one in it.missing:
        counts[one.reason] += one.count
    return ",".join(f"{many} {reason}" for reason, many in counts.most_common()) or NOTHING
