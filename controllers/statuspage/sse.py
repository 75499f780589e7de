"""Server-sent events: keeps open pages up to date with the fragments of HTML that have changed.

One refresh of the view serves all streams, and a slow reader delays no other.
"""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from typing import Any, Final

import msgspec
from aiohttp import web

from controllers.statuspage import html
from controllers.statuspage.auth import Visibility
from controllers.statuspage.query import ListPage, ListQuery
from controllers.statuspage.rows import StatusRow
from controllers.statuspage.source import Freshness
from controllers.statuspage.view import StatusView

REFRESH_SECONDS: Final = 0.5
"""Between two refreshes of the view: changes in between are sent together."""
HEARTBEAT: Final = 5.0
"""Seconds without an update after which a heartbeat is sent."""
RECHECK: Final = 15.0
"""Seconds after which the viewer's rights are reviewed again."""
WRITE_TIMEOUT: Final = 10.0
"""Seconds that a reader may take for one update."""
MAX_STREAMS, MAX_STREAMS_PER_VIEWER = 200, 20
RETRY: Final = b"retry: 3000\n\n"

AccessCheck = Callable[[], Awaitable[Visibility | None]]
"""What the viewer may see; None: the viewer is no longer authenticated."""

PageUpdate = dict[str, Any]
"""`parts` by the id of their element; `rows` by id, and the `order` of the page's rows."""
NextUpdate = Callable[[Visibility, float], PageUpdate | None]
"""What has changed since the last call, at a Unix time; {} if nothing has; None: the page is to be loaded again."""


class TooManyStreams(Exception):
    """There are MAX_STREAMS streams already, or MAX_STREAMS_PER_VIEWER of this viewer."""


class EventStreams:
    """All open streams. `clock`: Unix time."""

    def __init__(
        self, view: StatusView, clock: Callable[[], float], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._view, self._clock, self._monotonic = view, clock, monotonic
        self.refresh_seconds, self.write_timeout = REFRESH_SECONDS, WRITE_TIMEOUT
        self._open: Counter[str] = Counter()
        self._stopping = False
        self._watched, self._changed = asyncio.Event(), asyncio.Event()

    @property
    def open(self) -> int:
        return self._open.total()

    async def run(self) -> None:
        """Until cancelled: keeps the view up to date while a stream is open. Then all streams end."""
        self._stopping = False
        try:
            while True:
                await self._watched.wait()
                version = self._view.version
                await self._view.refresh()
                if version != self._view.version:
                    self._wake_all()
                await asyncio.sleep(self.refresh_seconds)
        finally:
            self._stopping = True
            self._wake_all()

    async def serve(
        self,
        request: web.Request,
        response: web.StreamResponse,
        viewer: str,
        next_update: NextUpdate,
        check: AccessCheck,
    ) -> None:
        """Until either end closes, or `check` returns None. Raises TooManyStreams."""
        if self._stopping or self.open >= MAX_STREAMS or self._open[viewer] >= MAX_STREAMS_PER_VIEWER:
            raise TooManyStreams
        self._open[viewer] += 1
        self._watched.set()
        try:
            await response.prepare(request)
            await self._send_updates(response, next_update, check)
        except (ConnectionError, TimeoutError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._open[viewer] -= 1
            self._open += Counter()  # drops viewers without a stream
            if not self._open:
                self._watched.clear()

    async def _send_updates(self, response: web.StreamResponse, next_update: NextUpdate, check: AccessCheck) -> None:
        await self._write(response, RETRY)
        checked_at = sent_at = self._monotonic()
        visibility = await check()
        while not self._stopping:
            changed = self._changed
            if self._monotonic() - checked_at >= RECHECK:
                checked_at, visibility = self._monotonic(), await check()
            update = next_update(visibility, self._clock()) if visibility is not None else None
            if update is None:
                await self._write(response, b"event: end\ndata: over\n\n")
                return
            if update or self._monotonic() - sent_at >= HEARTBEAT:
                await self._write(response, self._event(update))
                sent_at = self._monotonic()
            with suppress(TimeoutError):
                async with asyncio.timeout(HEARTBEAT):
                    await changed.wait()

    def _event(self, update: PageUpdate) -> bytes:
        now = self._clock()
        if not update:
            return b"event: beat\ndata: %.3f\n\n" % now
        return b"event: view\ndata: " + msgspec.json.encode({"now": now, **update}) + b"\n\n"

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        async with asyncio.timeout(self.write_timeout):
            await response.write(data)

    def _wake_all(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


class _Feed:
    """What both kinds of open pages have: the fragment about the caches' freshness, when it has changed."""

    def __init__(self, view: StatusView, freshness: Callable[[], Freshness]) -> None:
        self._view, self._freshness = view, freshness
        self._sent: Freshness | None = None

    def _fresh_parts(self, now: float) -> dict[str, str]:
        fresh, sent = self._freshness(), self._sent
        if sent is not None and msgspec.structs.replace(fresh, lost_for=sent.lost_for) == sent:
            return {}
        self._sent = fresh
        return {"fresh": html.render("fresh", frame={"fresh": fresh}, now=now)}


class ListFeed(_Feed):
    """The updates of an open list."""

    def __init__(self, view: StatusView, query: ListQuery, freshness: Callable[[], Freshness]) -> None:
        super().__init__(view, freshness)
        self._query = query
        self._page: ListPage | None = None
        self._order: list[str] = []
        self._revisions: dict[str, int] = {}
        self._fragments: dict[str, str] = {}

    def next_update(self, visibility: Visibility, now: float) -> PageUpdate:
        parts, update = self._fresh_parts(now), PageUpdate()
        page = self._view.page_of(self._query, visibility)
        if page is not self._page:
            self._page = page
            fragments = html.list_fragments(page, now)
            parts |= {name: text for name, text in fragments.items() if self._fragments.get(name) != text}
            self._fragments = fragments
            update |= self._changed_rows(page.rows, now)
        return update | {"parts": parts} if parts else update

    def _changed_rows(self, rows: Iterable[StatusRow], now: float) -> PageUpdate:
        current = {row.id: row for row in rows}
        new = [row for row in current.values() if self._revisions.get(row.id) != row.revision]
        update: PageUpdate = {"rows": {row.id: html.render("row", row=row, now=now) for row in new}} if new else {}
        if list(current) != self._order:
            update["order"] = self._order = list(current)
        self._revisions = {row.id: row.revision for row in current.values()}
        return update


class DetailFeed(_Feed):
    """The updates of the page of one gang or pod group."""

    def __init__(self, view: StatusView, row_id: str, freshness: Callable[[], Freshness]) -> None:
        super().__init__(view, freshness)
        self._row_id, self._revision = row_id, -1

    def next_update(self, visibility: Visibility, now: float) -> PageUpdate | None:
        """None when the gang is gone, or its viewer may no longer see it."""
        row = self._view.rows.get(self._row_id)
        if row is None or not visibility.shows_row(row):
            return None
        parts = self._fresh_parts(now)
        if not parts and row.revision == self._revision:
            return {}
        # Freshness has a sentence about the leader in the detail, too.
        self._revision = row.revision
        parts["about"] = html.detail_fragment(row, self._freshness(), now)
        return {"title": f"{html.detail_title(row)} - jobset-gate", "parts": parts}
