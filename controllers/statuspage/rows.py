"""Rows of the lists, with the explanation that `why` gives, and the query in a list's address. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from enum import IntEnum, StrEnum
from typing import Any, Final
from urllib.parse import quote, urlencode

import msgspec

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.explain import text as explained_lines
from jobset_gate.explain.model import Explanation, GangState
from jobset_gate.objects import terminal_text
from jobset_gate.podgroups.status import GroupStatus

MAX_MESSAGE: Final = 240
"""Characters of a row's message; the whole of it is on the gang's own page."""
PAGE_SIZE: Final = 100
MAX_QUERY: Final = 253
"""Characters of a word in a query."""


class Severity(IntEnum):
    """How much attention a row needs, the most first. The state says it in words, too: never by a colour alone."""

    BAD = 0
    WAIT = 1
    GOOD = 2
    QUIET = 3


class ListRight(Value, frozen=True):
    """The right to list one resource."""

    group: str
    resource: str

    @property
    def name(self) -> str:
        """As kubectl writes it."""
        return f"{self.resource}.{self.group}" if self.group else self.resource


JOBSETS: Final = ListRight(group=names.JOBSET_GROUP, resource="jobsets")
PODS: Final = ListRight(group="", resource="pods")


class RowKind(StrEnum):
    """What a row is about."""

    GANG = "gangs"
    GROUP = "groups"

    @property
    def path(self) -> str:
        """The address of its list."""
        return "/" if self is RowKind.GANG else "/groups"

    @property
    def events_path(self) -> str:
        """The address of the list's event stream."""
        return "/events" if self is RowKind.GANG else "/groups/events"

    @property
    def required(self) -> ListRight:
        """The right without which there is nothing to see at all."""
        return JOBSETS if self is RowKind.GANG else PODS


class StatusRow(Value, frozen=True):
    """One row. Its viewer needs the rights `needs` in its namespace."""

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
    message: str
    until: float | None
    """When its timeout expires; None: its clock does not run."""
    created: float
    needs: tuple[ListRight, ...]
    explanation: Explanation
    """Without the time at which it was made."""
    report: GroupStatus | None = None
    """Of a pod group."""
    revision: int = 0
    """Rises with every change of the row."""

    @property
    def way(self) -> str:
        """The flavor of a pod group."""
        return "" if self.report is None else str(self.report.key.flavor)


def gang_row(it: Explanation, created: float) -> StatusRow:
    """The row of a JobSet's gang."""
    row_id, path = f"gang-{it.namespace}.{it.name}", f"/gangs/{it.namespace}/{it.name}"
    return _row(it, id=row_id, kind=RowKind.GANG, path=path, message=_message(it), created=created, needs=(JOBSETS,))


def pod_group_row(it: Explanation, report: GroupStatus) -> StatusRow:
    """The row of a pod group, whose name may hold anything that an annotation may."""
    api = report.pod_group.api if report.pod_group is not None else ""
    return _row(
        it,
        id=f"group-{report.label}",
        kind=RowKind.GROUP,
        path=f"/groups/{quote(it.namespace, safe='')}/{quote(it.name, safe='')}?way={report.key.flavor}",
        message=_short(report.message or _message(it)),
        created=report.created,
        needs=(PODS, ListRight(group=api, resource="podgroups")) if api else (PODS,),
        report=report,
    )


def _row(it: Explanation, **more: Any) -> StatusRow:
    return StatusRow(
        namespace=it.namespace,
        name=it.name,
        state=str(it.state),
        tone=_TONES.get(it.state, Severity.WAIT),
        started=it.started,
        expected=it.expected,
        until=_deadline(it),
        explanation=msgspec.structs.replace(it, now=0.0),
        **more,
    )


def _deadline(it: Explanation) -> float | None:
    if it.waiting_since is None or it.timeout is None or not explained_lines.is_waiting(it):
        return None
    return it.waiting_since + it.timeout


def _message(it: Explanation) -> str:
    if not it.missing:
        return _short(it.message)
    more = len(it.missing) - 1
    text = _short(explained_lines.missing_reason(it.missing[0]))
    return text if not more else f"{text}; and {more} more reason{'s' if more > 1 else ''}"


def _short(text: str) -> str:
    words = terminal_text.line(text)
    return words if len(words) <= MAX_MESSAGE else words[: MAX_MESSAGE - 1] + "…"


_Order = Callable[[StatusRow], Any]
ORDERS: Final[Mapping[str, tuple[str, _Order]]] = {
    "attention": ("needs attention first", lambda it: (it.tone, it.until or float("inf"), it.namespace, it.name)),
    "name": ("by namespace and name", lambda it: (it.namespace, it.name)),
    "newest": ("newest first", lambda it: (-it.created, it.namespace, it.name)),
    "oldest": ("oldest first", lambda it: (it.created, it.namespace, it.name)),
    "lacking": ("most pods lacking first", lambda it: ((it.started or 0) - it.expected, it.namespace, it.name)),
}
"""By their word in the address: name and sort key."""
DEFAULT_ORDER: Final = "attention"


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which rows, in which order. "" does not filter."""

    kind: RowKind
    namespace: str = ""
    state: str = ""
    text: str = ""
    sort: str = DEFAULT_ORDER
    page: int = 1

    @property
    def filtered(self) -> bool:
        """Whether rows are left out."""
        return bool(self.namespace or self.state or self.text)

    def link(self, **changes: Any) -> str:
        """The address of this query with changes; its first page, unless a page is given."""
        return self.kind.path + self._tail(changes)

    def events(self) -> str:
        """The address of its event stream."""
        return self.kind.events_path + self._tail({"page": self.page})

    def _tail(self, changes: Mapping[str, Any]) -> str:
        query = replace(self, **{"page": 1, **changes})
        given = {
            "namespace": query.namespace,
            "state": query.state,
            "q": query.text,
            "sort": "" if query.sort == DEFAULT_ORDER else query.sort,
            "page": "" if query.page == 1 else str(query.page),
        }
        present = {key: value for key, value in given.items() if value}
        return f"?{urlencode(present)}" if present else ""


def parse_query(kind: RowKind, given: Mapping[str, str]) -> ListQuery:
    """From an address; a value that makes no sense counts as absent."""
    sort, page = given.get("sort", ""), given.get("page", "")
    return ListQuery(
        kind=kind,
        namespace=given.get("namespace", "").strip()[:MAX_QUERY],
        state=given.get("state", "").strip()[:MAX_QUERY],
        text=given.get("q", "").strip()[:MAX_QUERY],
        sort=sort if sort in ORDERS else DEFAULT_ORDER,
        page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
    )


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of rows and what is around it."""

    query: ListQuery
    rows: tuple[StatusRow, ...]
    all: int
    """Rows that the viewer may see."""
    found: int
    pages: int
    states: tuple[tuple[str, int], ...]
    """Rows by state, whatever state the query has; the most severe first."""
    namespaces: tuple[str, ...]
    late: tuple[StatusRow, ...]
    """Those found that have timed out."""


def select_page(query: ListQuery, visible: Iterable[StatusRow]) -> ListPage:
    """The page of a query, from the rows that its viewer may see."""
    all_rows = [row for row in visible if row.kind is query.kind]
    text = query.text.lower()
    matching = [
        row
        for row in all_rows
        if (not query.namespace or row.namespace == query.namespace)
        and (not text or text in f"{row.namespace}/{row.name}".lower())
    ]
    found = [row for row in matching if not query.state or row.state == query.state]
    found.sort(key=ORDERS[query.sort][1])
    pages = max(1, -(-len(found) // PAGE_SIZE))
    page = min(query.page, pages)
    tones = {row.state: row.tone for row in matching}
    states = Counter(row.state for row in matching)
    return ListPage(
        query=replace(query, page=page),
        rows=tuple(found[(page - 1) * PAGE_SIZE : page * PAGE_SIZE]),
        all=len(all_rows),
        found=len(found),
        pages=pages,
        states=tuple(sorted(states.items(), key=lambda it: (tones[it[0]], it[0]))),
        namespaces=tuple(sorted({row.namespace for row in all_rows})),
        late=tuple(row for row in found if row.state == GangState.TIMED_OUT and row.tone is Severity.BAD),
    )


_STATES: Final = {
    Severity.BAD: (
        "Unknown",
        GangState.TIMED_OUT,
        GangState.GATE_MISSING,
        GangState.CONFIG_MAP_CONFLICT,
        GangState.FAILED,
        names.REASON_CANNOT_GATHER,
        names.REASON_INVALID_GROUP,
        names.REASON_INVALID_GANG_GROUP,
        names.REASON_POD_GROUP_MISSING,
        names.REASON_ROLLED_BACK,
        names.REASON_ROLLBACK_BLOCKED,
        names.REASON_NATIVE_UNAVAILABLE,
        names.REASON_NOT_RECORDED,
    ),
    Severity.GOOD: (GangState.RELEASED, names.REASON_SATISFIED, names.REASON_RUNNING),
    Severity.QUIET: (
        *(GangState.SUSPENDED, GangState.COMPLETED, GangState.DELETING, GangState.MANAGED_ELSEWHERE),
        *(GangState.NOT_GATED, names.REASON_FINISHED),
    ),
}
_TONES: Final = {state: tone for tone, states in _STATES.items() for state in states}
"""All others are WAIT."""
