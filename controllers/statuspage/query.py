"""Queries: which rows of a list, in which order, as its address says; and the page of rows with its overview. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from controllers.statuspage.rows import HeldDevices, RowKind, Severity, StatusRow, sum_devices
from jobset_gate.explain.model import GIVEN_UP_STATES

PAGE_SIZE: Final = 100
DAY: Final = 86_400
MAX_QUERY: Final = 253
"""Characters of a word in a query."""

_Order = Callable[[StatusRow], Any]
ORDERS: Final[Mapping[str, tuple[str, _Order]]] = {
    "attention": ("needs attention first", lambda it: (it.tone, it.until or float("inf"), it.namespace, it.name)),
    "name": ("by namespace and name", lambda it: (it.namespace, it.name)),
    "newest": ("newest first", lambda it: (-it.created, it.namespace, it.name)),
    "oldest": ("oldest first", lambda it: (it.created, it.namespace, it.name)),
    "lacking": ("most pods lacking first", lambda it: ((it.started or 0) - it.expected, it.namespace, it.name)),
    "waiting": ("longest waiting first", lambda it: (it.since or float("inf"), it.namespace, it.name)),
    "held": ("most accelerators held first", lambda it: (-sum(one.count for one in it.held), it.namespace, it.name)),
}
"""By their word in the address: name and sort key. A minus before the word reverses the order."""
DEFAULT_ORDER: Final = "attention"
REVERSED: Final = "-"


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

    @property
    def order(self) -> str:
        """The order in words."""
        text = ORDERS[self.sort.removeprefix(REVERSED)][0]
        return f"{text}, reversed" if self.sort.startswith(REVERSED) else text

    def by(self, word: str) -> str:
        """The address of this query in that order; in the reversed one if that is its order already."""
        return self.link(sort=REVERSED + word if self.sort == word else word)

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
        sort=sort if sort.removeprefix(REVERSED) in ORDERS else DEFAULT_ORDER,
        page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
    )


@dataclass(frozen=True, slots=True)
class Overview:
    """What the rows found come to, whatever their state."""

    waiting: int
    lacking: int
    """Pods that the waiting ones lack."""
    longest: StatusRow | None
    """The one that has waited longest."""
    held: tuple[HeldDevices, ...]
    ended: tuple[tuple[str, float], ...]
    """The state of each that was ended at its gate, and when, as far as known."""

    @property
    def devices(self) -> int:
        """Held ones of all kinds."""
        return sum(it.count for it in self.held)

    def hours(self, now: float) -> float:
        """Device-hours until now."""
        return sum(it.hours(now) for it in self.held)

    @property
    def cost_per_hour(self) -> float | None:
        """Of those that have a price; None without any."""
        return _total(it.cost_per_hour for it in self.held)

    def cost(self, now: float) -> float | None:
        """Until now, of those that have a price; None without any."""
        return _total(it.cost(now) for it in self.held)

    def ended_today(self, now: float, state: str = "") -> int:
        """Since midnight, UTC, and in this state; "" is any."""
        return sum(moment >= now - now % DAY for its, moment in self.ended if state in ("", its))


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
    overview: Overview
    """Of the namespace and the name, in any state."""
    switched_off: bool = False
    """Nobody looks after this kind."""

    @property
    def given_up(self) -> tuple[tuple[str, int], ...]:
        """Of the states those of gangs that were ended at their gate."""
        return tuple(it for it in self.states if it[0] in GIVEN_UP_STATES)


def select_page(query: ListQuery, visible: Iterable[StatusRow], *, switched_off: bool = False) -> ListPage:
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
    found.sort(key=ORDERS[query.sort.removeprefix(REVERSED)][1], reverse=query.sort.startswith(REVERSED))
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
        overview=_overview(matching),
        switched_off=switched_off,
    )


def _total(costs: Iterable[float | None]) -> float | None:
    known = [it for it in costs if it is not None]
    return sum(known) if known else None


def _overview(rows: Iterable[StatusRow]) -> Overview:
    rows = tuple(rows)
    waiting = [row for row in rows if row.tone is Severity.WAIT]
    return Overview(
        waiting=len(waiting),
        lacking=sum(max(0, row.expected - (row.started or 0)) for row in waiting),
        longest=min((row for row in waiting if row.since is not None), key=ORDERS["waiting"][1], default=None),
        held=sum_devices(rows),
        ended=tuple((row.state, row.ended) for row in rows if row.ended is not None),
    )
