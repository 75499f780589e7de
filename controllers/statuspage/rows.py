"""One gang or group as a line of the page: explained by the builder that `why` has, and no word more."""

from enum import IntEnum
from typing import Final
from urllib.parse import quote

import msgspec

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.explain import text as explained_lines
from jobset_gate.explain.model import Explanation, GangState
from jobset_gate.objects import terminal_text
from jobset_gate.podgroups.status import GroupStatus

LONGEST: Final = 240
"""Letters of a line's reason; the whole of it is on the gang's own page."""


class RowKind(IntEnum):
    """What a line is about."""

    GANG = 0
    GROUP = 1


class Severity(IntEnum):
    """How much attention it asks for, the most first. Said in words, too: never by a colour alone."""

    BAD = 0
    WAIT = 1
    GOOD = 2
    QUIET = 3


class ListRight(Value, frozen=True):
    """Listing one kind of objects."""

    group: str
    resource: str

    @property
    def name(self) -> str:
        """As kubectl says it."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


JOBSETS: Final = ListRight(group=names.JOBSET_GROUP, resource="jobsets")
PODS: Final = ListRight(group="", resource="pods")


class StatusRow(Value, frozen=True):
    """One line. `needs`: what its viewer has to have the right to list in its namespace."""

    id: str
    kind: RowKind
    namespace: str
    name: str
    path: str
    """Its permalink."""
    state: str
    tone: Severity
    started: int | None
    """None: not known."""
    expected: int
    told: str
    until: float | None
    """When its time is up, if its clock runs."""
    created: float
    needs: tuple[ListRight, ...]
    way: str = ""
    revision: int = 0
    """Rises with every change of it."""

    def looks_like(self, other: "StatusRow | None") -> bool:
        """Whether a person would see no difference."""
        return other is not None and msgspec.structs.replace(other, revision=self.revision) == self


def gang_row(it: Explanation, created: float) -> StatusRow:
    """The line of a JobSet's gang."""
    row_id, path = f"gang-{it.namespace}.{it.name}", f"/gangs/{it.namespace}/{it.name}"
    return _row(it, RowKind.GANG, row_id, path, told=_told(it), created=created, needs=(JOBSETS,))


def pod_group_row(it: Explanation, report: GroupStatus) -> StatusRow:
    """The line of a pod group, whose name may hold anything that an annotation may."""
    api, way = report.pod_group.api if report.pod_group is not None else "", str(report.key.design)
    path = f"/groups/{quote(it.namespace, safe='')}/{quote(it.name, safe='')}?way={way}"
    needs = (PODS, ListRight(group=api, resource="podgroups")) if api else (PODS,)
    told = _short(report.message or _told(it))
    return _row(
        it, RowKind.GROUP, f"group-{report.label}", path, told=told, created=report.created, needs=needs, way=way
    )


def _row(
    it: Explanation,
    kind: RowKind,
    row_id: str,
    path: str,
    *,
    told: str,
    created: float,
    needs: tuple[ListRight, ...],
    way: str = "",
) -> StatusRow:
    """What both have from the one builder."""
    return StatusRow(
        id=row_id,
        kind=kind,
        namespace=it.namespace,
        name=it.name,
        path=path,
        state=str(it.state),
        tone=_TONES.get(it.state, Severity.WAIT),
        started=it.started,
        expected=it.expected,
        told=told,
        until=deadline_of(it),
        created=created,
        needs=needs,
        way=way,
    )


def deadline_of(it: Explanation) -> float | None:
    """When the timeout comes; None: no clock runs."""
    if it.since is None or it.timeout is None or not explained_lines.is_waiting(it):
        return None
    return it.since + it.timeout


def _told(it: Explanation) -> str:
    if not it.lacks:
        return _short(it.message)
    more = len(it.lacks) - 1
    text = _short(explained_lines.missing_reason(it.lacks[0]))
    return text if not more else f"{text}; and {more} more reason{'s' if more > 1 else ''}"


def _short(text: str) -> str:
    words = terminal_text.line(text)
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


_TONES: Final[dict[str, Severity]] = {
    "Unknown": Severity.BAD,
    GangState.WAITING: Severity.WAIT,
    GangState.DUE: Severity.WAIT,
    GangState.RELEASED: Severity.GOOD,
    GangState.TIMED_OUT: Severity.BAD,
    GangState.GATE_MISSING: Severity.BAD,
    GangState.CONFIG_MAP_CONFLICT: Severity.BAD,
    GangState.SUSPENDED: Severity.QUIET,
    GangState.COMPLETED: Severity.QUIET,
    GangState.FAILED: Severity.BAD,
    GangState.DELETING: Severity.QUIET,
    GangState.MANAGED_ELSEWHERE: Severity.QUIET,
    GangState.NOT_GATED: Severity.QUIET,
    names.REASON_SATISFIED: Severity.GOOD,
    names.REASON_RUNNING: Severity.GOOD,
    names.REASON_FINISHED: Severity.QUIET,
    names.REASON_CANNOT_GATHER: Severity.BAD,
    names.REASON_INVALID_GROUP: Severity.BAD,
    names.REASON_INVALID_GANG_GROUP: Severity.BAD,
    names.REASON_POD_GROUP_MISSING: Severity.BAD,
    names.REASON_ROLLED_BACK: Severity.BAD,
    names.REASON_ROLLBACK_BLOCKED: Severity.BAD,
    names.REASON_NATIVE_UNAVAILABLE: Severity.BAD,
    names.REASON_NOT_RECORDED: Severity.BAD,
}
