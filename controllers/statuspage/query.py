"""What a viewer asks to see, as it stands in the address: filter, order and page of the lines. Pure."""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import urlencode

from controllers.statuspage.rows import RowKind, StatusRow

SIZE: Final = 100
"""Lines on one page."""
LONGEST: Final = 253

_Order = Callable[[StatusRow], Any]
ORDERS: Final[Mapping[str, tuple[str, _Order]]] = {
    "attention": ("needs attention first", lambda it: (it.tone, it.until or float("inf"), it.namespace, it.name)),
    "name": ("by namespace and name", lambda it: (it.namespace, it.name)),
    "newest": ("newest first", lambda it: (-it.created, it.namespace, it.name)),
    "oldest": ("oldest first", lambda it: (it.created, it.namespace, it.name)),
    "lacking": ("most pods lacking first", lambda it: ((it.started or 0) - it.expected, it.namespace, it.name)),
}
"""By their word in the address: what they are called, and how they go."""
FIRST: Final = "attention"


@dataclass(frozen=True, slots=True)
class ListQuery:
    """Which lines, in which order. "" asks for nothing."""

    kind: RowKind
    namespace: str = ""
    state: str = ""
    text: str = ""
    sort: str = FIRST
    page: int = 1

    @property
    def path(self) -> str:
        """Of the list without any question."""
        return "/" if self.kind is RowKind.GANG else "/groups"

    @property
    def filtered(self) -> bool:
        """Something is left out."""
        return bool(self.namespace or self.state or self.text)

    def link(self, **changes: Any) -> str:
        """The address of this view with something else in it; the first page, unless a page is asked for."""
        return self.path + self._tail(changes)

    def events(self) -> str:
        """The address of its live changes."""
        return f"{'/events' if self.kind is RowKind.GANG else '/groups/events'}{self._tail({'page': self.page})}"

    def _tail(self, changes: Mapping[str, Any]) -> str:
        asked = replace(self, **{"page": 1, **changes})
        given = {
            "namespace": asked.namespace,
            "state": asked.state,
            "q": asked.text,
            "sort": "" if asked.sort == FIRST else asked.sort,
            "page": "" if asked.page == 1 else str(asked.page),
        }
        said = {key: value for key, value in given.items() if value}
        return f"?{urlencode(said)}" if said else ""


def parse(kind: RowKind, given: Mapping[str, str]) -> ListQuery:
    """From an address; what makes no sense counts as not said."""
    sort, page = given.get("sort", ""), given.get("page", "")
    return ListQuery(
        kind=kind,
        namespace=given.get("namespace", "").strip()[:LONGEST],
        state=given.get("state", "").strip()[:LONGEST],
        text=given.get("q", "").strip()[:LONGEST],
        sort=sort if sort in ORDERS else FIRST,
        page=max(1, int(page)) if page.isascii() and page.isdigit() and len(page) < 7 else 1,
    )


@dataclass(frozen=True, slots=True)
class ListPage:
    """One page of lines and what is around it."""

    query: ListQuery
    rows: tuple[StatusRow, ...]
    all: int
    """That the viewer may see."""
    found: int
    pages: int
    states: tuple[tuple[str, int], ...]
    """How many are in which state, among those of the namespace and text asked for; the most pressing first."""
    namespaces: tuple[str, ...]
    late: tuple[StatusRow, ...]
    """Of those that are found: whose time is up."""


def select_page(query: ListQuery, visible: Iterable[StatusRow], is_late: Callable[[StatusRow], bool]) -> ListPage:
    """The lines that a query asks for, of those that its viewer may see."""
    everything = [row for row in visible if row.kind is query.kind]
    text = query.text.lower()
    near = [
        row
        for row in everything
        if (not query.namespace or row.namespace == query.namespace)
        and (not text or text in f"{row.namespace}/{row.name}".lower())
    ]
    found = [row for row in near if not query.state or row.state == query.state]
    found.sort(key=ORDERS[query.sort][1])
    pages = max(1, -(-len(found) // SIZE))
    page = min(query.page, pages)
    tones = {row.state: row.tone for row in near}
    states = Counter(row.state for row in near)
    return ListPage(
        query=replace(query, page=page),
        rows=tuple(found[(page - 1) * SIZE : page * SIZE]),
        all=len(everything),
        found=len(found),
        pages=pages,
        states=tuple(sorted(states.items(), key=lambda it: (tones[it[0]], it[0]))),
        namespaces=tuple(sorted({row.namespace for row in everything})),
        late=tuple(row for row in found if is_late(row)),
    )
