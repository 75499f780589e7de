"""One gang or group as a line of the page: explained by the builder that `why` has, and no word more."""

from enum import IntEnum
from typing import Final
from urllib.parse import quote

import msgspec

from jobset_gate import explained_lines, names, terminal_text
from jobset_gate.explained import Explanation, State
from jobset_gate.groups.report import Report
from jobset_gate.model import Word

LONGEST: Final = 240
"""Letters of a line's reason; the whole of it is on the gang's own page."""


class Kind(IntEnum):
    """What a line is about."""

    GANG = 0
    GROUP = 1


class Tone(IntEnum):
    """How much attention it asks for, the most first. Said in words, too: never by a colour alone."""

    BAD = 0
    WAIT = 1
    GOOD = 2
    QUIET = 3


class Right(Word, frozen=True):
    """Listing one kind of objects."""

    group: str
    resource: str

    @property
    def name(self) -> str:
        """As kubectl says it."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


JOBSETS: Final = Right(group=names.JOBSET_GROUP, resource="jobsets")
PODS: Final = Right(group="", resource="pods")


class Row(Word, frozen=True):
    """One line. `needs`: what its viewer has to have the right to list in its namespace."""

    id: str
    kind: Kind
    namespace: str
    name: str
    path: str
    """Its permalink."""
    state: str
    tone: Tone
    started: int | None
    """None: not known."""
    expected: int
    told: str
    until: float | None
    """When its time is up, if its clock runs."""
    created: float
    needs: tuple[Right, ...]
    way: str = ""
    revision: int = 0
    """Rises with every change of it."""

    def same(self, other: "Row | None") -> bool:
        """Whether a person would see no difference."""
        return other is not None and msgspec.structs.replace(other, revision=self.revision) == self


def of_gang(it: Explanation, created: float) -> Row:
    """The line of a JobSet's gang."""
    row_id, path = f"gang-{it.namespace}.{it.name}", f"/gangs/{it.namespace}/{it.name}"
    return _row(it, Kind.GANG, row_id, path, told=_told(it), created=created, needs=(JOBSETS,))


def of_group(it: Explanation, report: Report) -> Row:
    """The line of a pod group, whose name may hold anything that an annotation may."""
    api, way = report.pod_group.api if report.pod_group is not None else "", str(report.key.design)
    path = f"/groups/{quote(it.namespace, safe='')}/{quote(it.name, safe='')}?way={way}"
    needs = (PODS, Right(group=api, resource="podgroups")) if api else (PODS,)
    told = _short(report.message or _told(it))
    return _row(it, Kind.GROUP, f"group-{report.label}", path, told=told, created=report.created, needs=needs, way=way)


def _row(
    it: Explanation,
    kind: Kind,
    row_id: str,
    path: str,
    *,
    told: str,
    created: float,
    needs: tuple[Right, ...],
    way: str = "",
) -> Row:
    """What both have from the one builder."""
    return Row(
        id=row_id,
        kind=kind,
        namespace=it.namespace,
        name=it.name,
        path=path,
        state=str(it.state),
        tone=_TONES.get(it.state, Tone.WAIT),
        started=it.started,
        expected=it.expected,
        told=told,
        until=until(it),
        created=created,
        needs=needs,
        way=way,
    )


def until(it: Explanation) -> float | None:
    """When the timeout comes; None: no clock runs."""
    if it.since is None or it.timeout is None or not explained_lines.waits(it):
        return None
    return it.since + it.timeout


def _told(it: Explanation) -> str:
    if not it.lacks:
        return _short(it.message)
    more = len(it.lacks) - 1
    text = _short(explained_lines.reason(it.lacks[0]))
    return text if not more else f"{text}; and {more} more reason{'s' if more > 1 else ''}"


def _short(text: str) -> str:
    words = terminal_text.line(text)
    return words if len(words) <= LONGEST else words[: LONGEST - 1] + "…"


_TONES: Final[dict[str, Tone]] = {
    "Unknown": Tone.BAD,
    State.WAITING: Tone.WAIT,
    State.DUE: Tone.WAIT,
    State.RELEASED: Tone.GOOD,
    State.TIMED_OUT: Tone.BAD,
    State.GATE_MISSING: Tone.BAD,
    State.CONFIG_MAP_CONFLICT: Tone.BAD,
    State.SUSPENDED: Tone.QUIET,
    State.COMPLETED: Tone.QUIET,
    State.FAILED: Tone.BAD,
    State.DELETING: Tone.QUIET,
    State.MANAGED_ELSEWHERE: Tone.QUIET,
    State.NOT_GATED: Tone.QUIET,
    names.REASON_SATISFIED: Tone.GOOD,
    names.REASON_RUNNING: Tone.GOOD,
    names.REASON_FINISHED: Tone.QUIET,
    names.REASON_CANNOT_GATHER: Tone.BAD,
    names.REASON_INVALID_GROUP: Tone.BAD,
    names.REASON_INVALID_GANG_GROUP: Tone.BAD,
    names.REASON_POD_GROUP_MISSING: Tone.BAD,
    names.REASON_ROLLED_BACK: Tone.BAD,
    names.REASON_ROLLBACK_BLOCKED: Tone.BAD,
    names.REASON_NATIVE_UNAVAILABLE: Tone.BAD,
    names.REASON_NOT_RECORDED: Tone.BAD,
}
