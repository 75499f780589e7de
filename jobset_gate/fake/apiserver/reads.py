"""GET of one object, LIST page by page, and WATCH: from bytes that are already encoded.

A page begins behind the last key of the page before. Pages are of different moments, unlike a real server's. All of
them give the resourceVersion of the first, so a watch from there shows what has changed in between.
"""

from __future__ import annotations

import asyncio
from bisect import bisect_right
from collections.abc import AsyncIterator, Callable

from jobset_gate.fake.apiserver import selectors
from jobset_gate.fake.apiserver.requests import ApiRequest, ServerState
from jobset_gate.fake.apiserver.responses import (
    ApiResponse,
    Obj,
    StatusError,
    bad_request,
    encode,
    no_such_path,
)
from jobset_gate.fake.apiserver.selectors import Predicate
from jobset_gate.fake.apiserver.store import StoredObject, StoreEvent


async def get_object(state: ServerState, request: ApiRequest) -> ApiResponse:
    subresource = request.target.subresource
    if subresource and not (subresource == "status" and request.kind.status):
        raise no_such_path()
    return ApiResponse(200, state.existing(request.target).raw)


async def list_objects(state: ServerState, request: ApiRequest) -> ApiResponse:
    version, revision = resource_version(request), state.store.revision
    limit = _number(request, "limit")
    if version > revision:
        raise StatusError(504, f"Too large resource version: {version}, current: {revision}", retry_after=1)
    kind, found = request.kind, matching(state, request)
    if request.query.get("continue"):
        revision, last = _read_continue(request.query["continue"])
        found = found[bisect_right(found, last, key=lambda row: row.key) :]
    meta = {"resourceVersion": str(revision)}
    if limit and len(found) > limit:
        found = found[:limit]
        meta["continue"] = "|".join((str(revision), *found[-1].key))
    head = encode({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta})
    items = (row.raw for row in found) if kind.custom else (row.bare for row in found)
    return ApiResponse(200, b'%s,"items":[%s]}' % (head[:-1], b",".join(items)))


def matching(state: ServerState, request: ApiRequest) -> list[StoredObject]:
    """The objects that a list or watch selects, in order."""
    kind = request.kind
    matches = selectors.predicate(kind, request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""))
    table = state.store.table(kind)
    rows = [table.rows[key] for key in table.span(request.target.namespace)]
    if request.target.name is not None:
        rows = [row for row in rows if row.key[1] == request.target.name]
    return rows if matches is None else [row for row in rows if matches(row)]


def resource_version(request: ApiRequest) -> int:
    """Of the query, 0 for none. Errors: StatusError 400."""
    return _number(request, "resourceVersion")


def _number(request: ApiRequest, name: str) -> int:
    text = request.query.get(name, "")
    if text and not text.isdigit():
        raise bad_request(f"{name}: Invalid value: {text!r}: must be a non-negative number")
    return int(text or 0)


def _read_continue(text: str) -> tuple[int, tuple[str, str]]:
    """The resourceVersion of the first page, and the last key of the page before. Errors: StatusError 400."""
    match text.split("|"):
        case [revision, namespace, name] if revision.isdigit():
            return int(revision), (namespace, name)
        case _:
            raise bad_request("continue key is not valid")


BOOKMARK_SECONDS = 60.0
_LEAST_TIMEOUT = 1800


class Watch:
    """One open watch. The store offers each event synchronously; `batches` yields them as bytes.

    Errors at construction: StatusError 400, or 410 for a version whose history is gone.
    """

    def __init__(self, state: ServerState, request: ApiRequest) -> None:
        self._state = state
        self._request = request
        self._kind = request.kind
        self._table = state.store.table(request.kind)
        self._relevant = _filter(request)
        self._lines: list[bytes] = []
        self._wake = asyncio.Event()
        self.closed = False
        self._bookmarks = request.flag("allowWatchBookmarks")
        self._start()

    def _start(self) -> None:
        version = resource_version(self._request)
        if version:
            self._catch_up(version)
        else:
            self._lines += [StoreEvent(row.rv, None, row).line("ADDED") for row in matching(self._state, self._request)]
        self._table.watchers.add(self.offer)
        self._wake.set()

    def _catch_up(self, rv: int) -> None:
        if rv < self._table.floor:
            raise StatusError(410, f"too old resource version: {rv} ({self._table.floor + 1})")
        if rv > self._state.store.revision:
            raise StatusError(
                504, f"Too large resource version: {rv}, current: {self._state.store.revision}", retry_after=1
            )
        for change in self._table.since(rv):
            self.offer(change)

    def offer(self, change: StoreEvent) -> None:
        line = self._relevant(change)
        if line is not None:
            self._lines.append(line)
            self._wake.set()

    def close(self) -> None:
        """End the stream after the lines already queued."""
        self.closed = True
        self._table.watchers.discard(self.offer)
        self._wake.set()

    async def batches(self) -> AsyncIterator[bytes]:
        """Whole lines, as many as are queued; ends at the timeout with a last bookmark."""
        loop = asyncio.get_running_loop()
        ends = loop.time() + self._timeout()
        marks = loop.time() + BOOKMARK_SECONDS
        try:
            while True:
                await _wait(self._wake, min(ends, marks) - loop.time())
                self._wake.clear()
                if loop.time() >= min(ends, marks) and not self.closed:
                    marks += BOOKMARK_SECONDS
                    self._lines += [self._bookmark()] if self._bookmarks else []
                lines, self._lines = self._lines, []
                if lines:
                    yield b"".join(lines)
                if self.closed or loop.time() >= ends:
                    return
        finally:
            self.close()

    def _timeout(self) -> float:
        asked = self._request.query.get("timeoutSeconds", "")
        return float(asked) if asked.isdigit() and int(asked) else _LEAST_TIMEOUT * (1 + self._state.rng.random())

    def _bookmark(self) -> bytes:
        meta: Obj = {"resourceVersion": str(self._state.store.revision), "creationTimestamp": None}
        body = {"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": meta}
        return b'{"type":"BOOKMARK","object":%s}\n' % encode(body)


async def _wait(event: asyncio.Event, seconds: float) -> None:
    """Until the event is set, or for `seconds`."""
    if event.is_set() or seconds <= 0:
        return
    handle = asyncio.get_running_loop().call_later(seconds, event.set)
    try:
        await event.wait()
    finally:
        handle.cancel()


def _filter(request: ApiRequest) -> Callable[[StoreEvent], bytes | None]:
    """The line that an event makes for this watch, None for no line."""
    target, query = request.target, request.query
    labels, fields = query.get("labelSelector", ""), query.get("fieldSelector", "")
    matches = selectors.predicate(request.kind, labels, fields)
    selector = f"{labels}\0{fields}"

    def concerned(row: StoredObject) -> bool:
        namespace, name = row.key
        return target.namespace in (None, namespace) and target.name in (None, name)

    def line(change: StoreEvent) -> bytes | None:
        if not concerned(change.now):
            return None
        if matches is None:
            return change.line(change.type)
        if selector not in change.selected:
            # Computed once for all watches with this selector.
            change.selected[selector] = selected(change, matches)
        return change.selected[selector]

    def selected(change: StoreEvent, matches: Predicate) -> bytes | None:
        was = change.old is not None and matches(change.old)
        if change.deleted:
            return change.line("DELETED") if was else None
        if matches(change.now):
            return change.line("MODIFIED" if was else "ADDED")
        return _left(change) if was else None

    return line


def _left(change: StoreEvent) -> bytes:
    """The last state that matched, at the version at which the object stopped matching."""
    line = change.lines.get("LEFT")
    if line is None and change.old is not None:
        last = change.old.fresh()
        last["metadata"]["resourceVersion"] = str(change.rv)
        line = change.lines["LEFT"] = b'{"type":"DELETED","object":%s}\n' % encode(last)
    return line or b""
