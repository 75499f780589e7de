"""View cache: the rows of all gangs and pod groups; only what has changed is explained again.

An explanation costs time in proportion to a gang's pods, and the event loop is the controller's. So the view is
refreshed only for requests and open streams, one gang at a time, and one takes a twentieth of the time at most.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, Final

import structlog
from msgspec.structs import replace

from controllers.statuspage import rows
from controllers.statuspage.auth import Visibility
from controllers.statuspage.query import ListPage, ListQuery, select_page
from controllers.statuspage.rows import StatusRow
from controllers.statuspage.source import PageSource
from jobset_gate.barrier.model import GangKey
from jobset_gate.explain.gang import explain_gang, explain_pod_group
from jobset_gate.explain.model import Explanation, GangState
from jobset_gate.podgroups.model import PodGroupKey as GroupKey
from jobset_gate.podgroups.status import group_status

UNKNOWN: Final = "Unknown"
"""The state of a gang whose explanation fails."""
_UNEXPLAINED: Final = "this page cannot explain it; the controller's log says why"

_log = structlog.get_logger(__name__)

REST_FACTOR: Final = 20
"""A gang that took a second to explain is not explained again for so many seconds; the same for all groups."""
THREAD_PODS: Final = 500
"""A gang with more pods is explained in a thread: 20,000 of them take a fifth of a second."""
MAX_PAGES: Final = 256
"""Lists that are kept: while nothing changes, each search would otherwise be kept for ever."""
MAX_DIRTY: Final = 50_000
"""After more changes between two refreshes everything is explained again."""


class StatusView:
    """`rows` by id; `version` rises with every change of a row."""

    def __init__(self, source: PageSource, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._source, self._monotonic = source, monotonic
        self.rows: dict[str, StatusRow] = {}
        self.version = 0
        self.pages: dict[tuple[ListQuery, Visibility], ListPage] = {}
        """Lists, made once for all viewers who see the same while nothing changes."""
        self._gangs: dict[GangKey, float] = {}
        """Every gang with a row, and until when it rests."""
        self._groups: dict[GroupKey, tuple[str, tuple[Any, ...]]] = {}
        """The row id of each group, and what the row was made from."""
        self._dirty: set[GangKey] = set()
        self._groups_rest_until = 0.0
        self._complete = False
        self._lock = asyncio.Lock()

    def mark_dirty(self, key: GangKey) -> None:
        if self._complete:
            self._dirty.add(key)
            if len(self._dirty) > MAX_DIRTY:
                self._complete = False
                self._dirty.clear()

    def rows_of(self, kind: rows.RowKind) -> Iterable[StatusRow]:
        return (row for row in self.rows.values() if row.kind is kind)

    def page_of(self, query: ListQuery, visibility: Visibility) -> ListPage:
        """The page of a list as a viewer sees it; the same object while nothing changes."""
        found = self.pages.get((query, visibility))
        if found is None:
            if len(self.pages) >= MAX_PAGES:
                self.pages.clear()
            visible = filter(visibility.shows_row, self.rows_of(query.kind))
            off = query.kind is rows.RowKind.GROUP and self._source.groups is None
            found = self.pages[query, visibility] = select_page(query, visible, switched_off=off)
        return found

    async def refresh(self) -> None:
        """Brings all rows up to date, but for gangs that took long and were explained lately."""
        async with self._lock:
            if not self._complete:
                self._complete = True
                self._dirty = {*self._source.index.keys(), *self._gangs}
            await self._refresh_gangs()
            await self._refresh_groups()

    # --- Gangs -------------------------------------------------------------------------------------------------------

    async def _refresh_gangs(self) -> None:
        now = self._source.clock()
        for key in self._gangs:
            row = self.rows[rows.row_id(key)]
            if row.until is not None and row.until <= now and row.state == GangState.WAITING:
                self._dirty.add(key)
        for key in list(self._dirty):
            if self._gangs.get(key, 0.0) <= self._monotonic():
                self._dirty.discard(key)
                await self._refresh_gang(key)
                await asyncio.sleep(0)

    async def _refresh_gang(self, key: GangKey) -> None:
        begin = self._monotonic()
        seen = self._source.index.peek(key)
        if seen is None:
            if self._gangs.pop(key, None) is not None:
                self._drop(rows.row_id(key))
            return
        # A snapshot is immutable, so it can be explained in a thread.
        explain = partial(explain_gang, seen, self._source.clock())
        try:
            found = await asyncio.to_thread(explain) if len(seen.pods) > THREAD_PODS else explain()
            row = rows.gang_row(found, seen, self._source.prices)
        except Exception:  # noqa: BLE001 - one odd gang must not hide all others
            _log.exception("a gang cannot be explained", **key.log_fields())
            explanation = Explanation(
                kind=seen.workload.source.kind,
                source=key.source,
                namespace=key.namespace,
                name=seen.workload.shown_name,
                owner=seen.workload.owner,
                state=UNKNOWN,
                message=_UNEXPLAINED,
            )
            row = rows.gang_row(explanation, seen, {})
        self._put(row)
        self._gangs[key] = self._rest_until(begin)

    # --- Groups ------------------------------------------------------------------------------------------------------

    async def _refresh_groups(self) -> None:
        groups, begin = self._source.groups, self._monotonic()
        if groups is None or begin < self._groups_rest_until:
            return
        now, there = self._source.clock(), list(groups.keys())
        for key in self._groups.keys() - set(there):
            self._drop(self._groups.pop(key)[0])
        for key in there:
            self._refresh_group(key, now)
            await asyncio.sleep(0)
        self._groups_rest_until = self._rest_until(begin)

    def _refresh_group(self, key: GroupKey, now: float) -> None:
        found = self._source.group(key)
        if found is None:
            return  # deleted meanwhile: the next refresh drops it
        seen, why = found
        # The same objects as before, unless the group has changed.
        sources = (seen.group, seen.members, seen.record, seen.pod_group_status, seen.state, why)
        id_, before = self._groups.get(key, ("", ()))
        row = self.rows.get(id_)
        late = row is not None and row.until is not None and row.until <= now
        if not late and before == sources:
            return
        try:
            report = group_status(seen, now, why)
            explanation = explain_pod_group(report, now)
        except Exception:  # noqa: BLE001 - as above; explained again after its next change
            _log.exception("a group cannot be explained", namespace=key.namespace, group=key.name)
            self._groups[key] = id_, sources
            return
        made = rows.pod_group_row(explanation, report)
        self._groups[key] = made.id, sources
        self._put(made)

    # --- Both --------------------------------------------------------------------------------------------------------

    def _put(self, row: StatusRow) -> None:
        before = self.rows.get(row.id)
        if before is not None and replace(row, revision=before.revision, report=before.report) == before:
            row = replace(row, revision=before.revision)
        else:
            self._count_change()
            row = replace(row, revision=self.version)
        self.rows[row.id] = row

    def _drop(self, id_: str) -> None:
        if self.rows.pop(id_, None) is not None:
            self._count_change()

    def _count_change(self) -> None:
        self.version += 1
        self.pages.clear()

    def _rest_until(self, begin: float) -> float:
        """When something that was explained since `begin` may be explained again; 0 if that took not long."""
        now = self._monotonic()
        rest = (now - begin) * REST_FACTOR
        return now + rest if rest > 1 else 0.0
