"""GET of one object, LIST, and WATCH: from bytes that are already encoded.

A list comes in one page, whatever its limit.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import suppress

from jobset_gate_demo.fake.apiserver.requests import ApiRequest, ServerState
from jobset_gate_demo.fake.apiserver.responses import ApiResponse, Obj, StatusError, encode
from jobset_gate_demo.fake.apiserver.store import StoredObject, StoreEvent, field_tests, label_tests


async def get_object(state: ServerState, request: ApiRequest) -> ApiResponse:
    return ApiResponse(200, state.existing(request.target).raw)


async def list_objects(state: ServerState, request: ApiRequest) -> ApiResponse:
    kind, found = request.kind, _selected(state, request)
    meta = {"resourceVersion": str(state.store.revision)}
    head = encode({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta})
    items = (row.raw for row in found) if kind.custom else (row.bare for row in found)
    return ApiResponse(200, b'%s,"items":[%s]}' % (head[:-1], b",".join(items)))


def _selected(state: ServerState, request: ApiRequest) -> list[StoredObject]:
    """The objects that a list or watch selects, in the order of namespace and name."""
    found = filter(_selection(request), state.store.table(request.kind).rows.values())
    return sorted(found, key=lambda row: row.key)


def _selection(request: ApiRequest) -> Callable[[StoredObject], bool]:
    """Whether a list or watch of this request is for an object."""
    target, query = request.target, request.query
    labels, fields = label_tests(query.get("labelSelector", "")), field_tests(query.get("fieldSelector", ""))

    def selects(row: StoredObject) -> bool:
        namespace, name = row.key
        if target.namespace not in (None, namespace) or target.name not in (None, name):
            return False
        return all(test(row.labels) for test in labels) and all(test(row.fields) for test in fields)

    return selects


BOOKMARK_SECONDS = 60.0
_LEAST_TIMEOUT = 1800


class Watch:
    """One open watch. The store offers each event synchronously; `batches` yields them as bytes.

    Errors at construction: StatusError 410 for a version whose history is gone.
    """

    def __init__(self, state: ServerState, request: ApiRequest) -> None:
        self._state = state
        self._request = request
        self._kind = request.kind
        self._table = state.store.table(request.kind)
        self._selects = _selection(request)
        self._lines: list[bytes] = []
        self._wake = asyncio.Event()
        self.closed = False
        version = int(request.query.get("resourceVersion") or 0)
        if version < self._table.floor and version:
            raise StatusError(410, f"too old resource version: {version} ({self._table.floor + 1})")
        if version:
            for change in self._table.since(version):
                self.offer(change)
        else:
            self._lines += [_line("ADDED", row.raw) for row in _selected(state, request)]
        self._table.watchers.add(self.offer)
        self._wake.set()

    def offer(self, change: StoreEvent) -> None:
        """An object that no longer matches is deleted, for this watch."""
        was = change.old is not None and self._selects(change.old)
        if not change.deleted and self._selects(change.now):
            self._lines.append(_line("MODIFIED" if was else "ADDED", change.now.raw))
        elif was:
            self._lines.append(_line("DELETED", change.now.raw if change.deleted else change.left()))
        else:
            return
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
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(min(ends, marks)):
                        await self._wake.wait()
                self._wake.clear()
                if loop.time() >= min(ends, marks) and not self.closed:
                    marks += BOOKMARK_SECONDS
                    self._lines += [self._bookmark()] if "allowWatchBookmarks" in self._request.query else []
                lines, self._lines = self._lines, []
                if lines:
                    yield b"".join(lines)
                if self.closed or loop.time() >= ends:
                    return
        finally:
            self.close()

    def _timeout(self) -> float:
        asked = float(self._request.query.get("timeoutSeconds") or 0)
        return asked or _LEAST_TIMEOUT * (1 + self._state.rng.random())

    def _bookmark(self) -> bytes:
        meta: Obj = {"resourceVersion": str(self._state.store.revision), "creationTimestamp": None}
        return _line(
            "BOOKMARK", encode({"kind": self._kind.kind, "apiVersion": self._kind.api_version, "metadata": meta})
        )


def _line(type_: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (type_.encode(), raw)
