"""What is new to somebody who has a page open: pieces of HTML, and only those that changed."""

from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from controllers.statuspage import html as pages
from controllers.statuspage.authz import Visibility
from controllers.statuspage.html import StatusDetail
from controllers.statuspage.query import ListPage, ListQuery, select_page
from controllers.statuspage.rows import Severity, StatusRow
from controllers.statuspage.source import Freshness
from controllers.statuspage.view import StatusView
from jobset_gate.explain.model import GangState

MAX_PAGES = 256
"""Kept at once: where nothing changes for hours, each word that somebody looks for would be kept as long."""

PageUpdate = dict[str, Any]
"""`parts` by the id of their element; `rows` by id, and `order` of those that the page has."""


class StreamEnded(Exception):
    """There is nothing more to tell: the page is to be loaded anew."""


def is_late(row: StatusRow) -> bool:
    """Whether its time was up."""
    return row.state == GangState.TIMED_OUT and row.tone is Severity.BAD


class ListCache:
    """Pages of lines, worked out once for all who ask for the same while nothing changes."""

    def __init__(self, board: StatusView) -> None:
        self._board = board
        self._version = -1
        self._known: dict[tuple[ListQuery, Visibility], ListPage] = {}
        self._lines: dict[str, tuple[int, str]] = {}

    def page_of(self, query: ListQuery, sight: Visibility) -> ListPage:
        """What is seen of the board at this moment."""
        if self._version != self._board.version:
            self._known.clear()
            self._version = self._board.version
        found = self._known.get((query, sight))
        if found is None:
            if len(self._known) >= MAX_PAGES:
                self._known.clear()
            found = self._known[query, sight] = select_page(
                query, sight.visible_rows(self._board.rows_of(query.kind)), is_late
            )
        return found

    def __len__(self) -> int:
        return len(self._known)

    def row_html(self, row: StatusRow, now: float) -> str:
        """As HTML; the browser itself counts its time down."""
        known = self._lines.get(row.id)
        if known is not None and known[0] == row.revision:
            return known[1]
        if len(self._lines) > 2 * len(self._board.rows) + 100:
            self._lines.clear()
        made = pages.row_fragment(row, now)
        self._lines[row.id] = row.revision, made
        return made


class _FreshnessFeed:
    """Tells when how true the page is has become another."""

    def __init__(self, fresh: Callable[[], Freshness]) -> None:
        self._fresh = fresh
        self._told: Freshness | None = None

    def parts(self, now: float) -> dict[str, str]:
        fresh = self._fresh()
        same = self._told is not None and msgspec.structs.replace(fresh, lost_for=self._told.lost_for) == self._told
        if same:
            return {}
        self._told = fresh
        return {"fresh": pages.freshness_fragment(fresh, now)}


class ListFeed:
    """The changes of a list."""

    def __init__(
        self, views: ListCache, query: ListQuery, fresh: Callable[[], Freshness], *, groups_kept: bool
    ) -> None:
        self._views, self._query, self._groups_kept = views, query, groups_kept
        self._fresh = _FreshnessFeed(fresh)
        self._seen: ListPage | None = None
        self._order: list[str] = []
        self._revisions: dict[str, int] = {}
        self._pieces: dict[str, str] = {}

    def next_update(self, sight: Visibility, now: float) -> PageUpdate:
        """Since it was asked last; {} if there is none."""
        parts, news = self._fresh.parts(now), PageUpdate()
        seen = self._views.page_of(self._query, sight)
        if seen is not self._seen:
            self._seen = seen
            parts |= self._changed(pages.list_fragments(seen, groups_kept=self._groups_kept))
            news |= self._rows(seen.rows, now)
        if parts:
            news["parts"] = parts
        return news

    def _changed(self, pieces: dict[str, str]) -> dict[str, str]:
        changed = {name: html for name, html in pieces.items() if self._pieces.get(name) != html}
        self._pieces = pieces
        return changed

    def _rows(self, rows: Iterable[StatusRow], now: float) -> PageUpdate:
        known = {row.id: row for row in rows}
        new = [row for row in known.values() if self._revisions.get(row.id) != row.revision]
        found: PageUpdate = {"rows": {row.id: self._views.row_html(row, now) for row in new}} if new else {}
        order = list(known)
        if order != self._order or self._revisions.keys() != known.keys():
            found["order"] = order
        self._order, self._revisions = order, {row.id: row.revision for row in known.values()}
        return found


class GangFeed:
    """The changes of one gang's page."""

    def __init__(
        self, board: StatusView, id_: str, fresh: Callable[[], Freshness], about: Callable[[str], StatusDetail]
    ) -> None:
        self._board, self._id, self._about = board, id_, about
        self._fresh = _FreshnessFeed(fresh)
        self._revision = -1

    def next_update(self, sight: Visibility, now: float) -> PageUpdate:
        """Raises Gone when there is no such gang any more, or its viewer may not see it."""
        row = self._board.rows.get(self._id)
        if row is None or not sight.shows_row(row):
            raise StreamEnded
        parts = self._fresh.parts(now)
        if not parts and row.revision == self._revision:
            return {}
        # With who leads goes a sentence about it.
        self._revision = row.revision
        it = self._about(self._id)
        title = f"{it.told.namespace}/{it.told.name}: {it.told.state} - jobset-gate"
        return {"title": title, "parts": {**parts, "about": pages.detail_fragment(it)}}
