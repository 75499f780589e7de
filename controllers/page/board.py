"""All lines of the page, kept up to date while somebody looks: only what has changed is explained anew.

An explanation costs time in proportion to a gang's pods, and the event loop is the controller's. So the board rests
while nobody looks, goes on in slices, and looks at one gang for a twentieth of the time at most.
"""

import asyncio
import time
from collections.abc import Callable, Iterable
from typing import Any, Final

import msgspec
import structlog

from controllers.keys import Key
from controllers.page import rows
from controllers.page.rows import Row
from controllers.page.source import Source
from jobset_gate.explain import explain
from jobset_gate.explain_group import explain_group
from jobset_gate.explained import Explanation, State
from jobset_gate.groups.model import Key as GroupKey
from jobset_gate.groups.report import Report

UNKNOWN: Final = "Unknown"
"""The state of what this page fails to explain."""
_ODD: Final = "this page cannot explain it; the controller's log says why"

_log = structlog.get_logger(__name__)

SLICE: Final = 0.005
"""Seconds of work after which others get their turn."""
SHARE: Final = 20
"""A gang that took a second to explain is not explained again for so many; nor are all groups looked through."""
MANY: Final = 500
"""Pods; more of them are explained in a thread of their own."""
MOST_DIRTY: Final = 50_000
"""More changes than that while nobody looks: everything is looked at anew then."""


class Board:
    """`rows` by id; `version` rises with every change of any of them."""

    def __init__(self, source: Source, patience: Callable[[], float] = time.monotonic) -> None:
        self._source, self._patience = source, patience
        self.rows: dict[str, Row] = {}
        self.version = 0
        self._told: dict[str, Explanation] = {}
        self._reports: dict[str, Report] = {}
        self._ids: dict[Key, str] = {}
        self._groups: dict[GroupKey, tuple[str, tuple[Any, ...]]] = {}
        """The line of each group, and what it was made of."""
        self._dirty: set[Key] = set()
        self._not_before: dict[Key, float] = {}
        self._groups_not_before = 0.0
        self._begun = False
        self._lock = asyncio.Lock()
        self._slice = 0.0

    def touched(self, key: Key) -> None:
        """Something of this gang is different."""
        if self._begun:
            self._dirty.add(key)
            if len(self._dirty) > MOST_DIRTY:
                self._begun = False
                self._dirty.clear()

    def explanation(self, id_: str) -> Explanation | None:
        """Of one line, at this moment."""
        told = self._told.get(id_)
        return None if told is None else msgspec.structs.replace(told, now=self._source.clock())

    def report(self, id_: str) -> Report | None:
        """Of a group's line."""
        return self._reports.get(id_)

    def of(self, kind: rows.Kind) -> Iterable[Row]:
        """All lines of a kind."""
        return (row for row in self.rows.values() if row.kind is kind)

    async def refresh(self) -> None:
        """Brings all lines up to date; one that was explained just now, and took long, soon."""
        async with self._lock:
            if not self._begun:
                self._begun = True
                self._dirty = {*self._source.index.keys(), *self._ids}
            self._slice = self._patience()
            await self._gangs()
            await self._all_groups()

    # --- Gangs -------------------------------------------------------------------------------------------------------

    async def _gangs(self) -> None:
        now = self._source.clock()
        self._dirty.update(key for key, id_ in self._ids.items() if self._expired(id_, now))
        for key in list(self._dirty):
            if self._not_before.get(key, 0.0) <= self._patience():
                self._dirty.discard(key)
                await self._gang(key)
                await self._pause()

    def _expired(self, id_: str, now: float) -> bool:
        row = self.rows[id_]
        return row.until is not None and row.until <= now and row.state == State.WAITING

    async def _gang(self, key: Key) -> None:
        begin = self._patience()
        seen = self._source.index.look(key)
        if seen is None:
            self._drop(self._ids.pop(key, ""))
            self._not_before.pop(key, None)
            return
        now = self._source.clock()
        # What was seen changes no more, so it may take its time beside the loop.
        try:
            told = await asyncio.to_thread(explain, seen, now) if len(seen.pods) > MANY else explain(seen, now)
        except Exception:  # noqa: BLE001 - one odd gang must not hide all others
            _log.exception("a gang cannot be explained", namespace=key.namespace, jobset=key.name)
            told = Explanation(kind="JobSet", namespace=key.namespace, name=key.name, state=UNKNOWN, message=_ODD)
        row = rows.of_gang(told, seen.jobset.created)
        self._ids[key] = row.id
        self._put(row, told)
        took = self._patience() - begin
        if took * SHARE > 1:
            self._not_before[key] = self._patience() + took * SHARE
        else:
            self._not_before.pop(key, None)

    # --- Groups ------------------------------------------------------------------------------------------------------

    async def _all_groups(self) -> None:
        groups, begin = self._source.groups, self._patience()
        if groups is None or begin < self._groups_not_before:
            return
        now, there = self._source.clock(), list(groups.keys())
        for key in self._groups.keys() - set(there):
            self._drop(self._groups.pop(key)[0])
        for key in there:
            self._group(key, now)
            await self._pause()
        took = self._patience() - begin
        self._groups_not_before = self._patience() + took * SHARE if took * SHARE > 1 else 0.0

    def _group(self, key: GroupKey, now: float) -> None:
        found = self._source.group(key)
        if found is None:
            return  # it went meanwhile: the next look finds it missing
        seen, why = found
        # The same objects as before, unless something of it is different.
        made_of = (seen.group, seen.members, seen.record, seen.kind_status, seen.annotations, why)
        id_, before = self._groups.get(key, ("", ()))
        row = self.rows.get(id_)
        late = row is not None and row.until is not None and row.until <= now
        if not late and _alike(before, made_of):
            return
        try:
            report = self._source.report(seen, why)
            told = explain_group(report, now)
        except Exception:  # noqa: BLE001 - as above; it is shown again once it is different
            _log.exception("a group cannot be explained", namespace=key.namespace, group=key.name)
            self._groups[key] = id_, made_of
            return
        made = rows.of_group(told, report)
        self._groups[key] = made.id, made_of
        self._reports[made.id] = report
        self._put(made, told)

    # --- Details -----------------------------------------------------------------------------------------------------

    def _put(self, row: Row, told: Explanation) -> None:
        before, old = self.rows.get(row.id), self._told.get(row.id)
        if row.same(before) and old is not None and msgspec.structs.replace(old, now=told.now) == told:
            return
        self.version += 1
        self.rows[row.id] = msgspec.structs.replace(row, revision=self.version)
        self._told[row.id] = told

    def _drop(self, id_: str) -> None:
        if self.rows.pop(id_, None) is not None:
            self.version += 1
        self._told.pop(id_, None)
        self._reports.pop(id_, None)

    async def _pause(self) -> None:
        if self._patience() - self._slice >= SLICE:
            await asyncio.sleep(0)
            self._slice = self._patience()


def _alike(before: tuple[Any, ...], after: tuple[Any, ...]) -> bool:
    return len(before) == len(after) and all(
        one is other or one == other for one, other in zip(before, after, strict=True)
    )
