"""GET of one object and LIST of many, paged from bytes that are already encoded."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from jobset_gate.fake.apiserver import selectors
from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.requests import ApiRequest, ServerState
from jobset_gate.fake.apiserver.responses import (
    ApiResponse,
    Obj,
    StatusError,
    bad_request,
    decode,
    encode,
    expired,
)
from jobset_gate.fake.apiserver.store import StoredObject

_SNAPSHOTS_KEPT = 64


def get(state: ServerState, request: ApiRequest) -> ApiResponse:
    return ApiResponse(200, state.existing(request.target).raw)


@dataclass(frozen=True, slots=True)
class _Page:
    items: list[StoredObject]
    rv: int
    continue_: str
    remaining: int


class ListHandler:
    """Serves lists; a list in pages shows the state of its first page throughout."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._snapshots: OrderedDict[str, tuple[int, list[StoredObject]]] = OrderedDict()

    def list(self, request: ApiRequest) -> ApiResponse:
        limit = _number(request.query, "limit")
        page = self._resumed(request, limit) if request.query.get("continue") else self._first(request, limit)
        return ApiResponse(200, _encoded(request.kind, page))

    def _first(self, request: ApiRequest, limit: int) -> _Page:
        rv = _number(request.query, "resourceVersion")
        revision = self._state.store.revision
        if rv > revision:
            raise StatusError(504, f"Too large resource version: {rv}, current: {revision}", retry_after=1)
        found = matching(self._state, request)
        if not limit or len(found) <= limit:
            return _Page(found, revision, "", 0)
        token = self._state.new_uid()
        self._snapshots[token] = revision, found
        if len(self._snapshots) > _SNAPSHOTS_KEPT:
            self._snapshots.popitem(last=False)
        return _Page(found[:limit], revision, _continue(token, limit), len(found) - limit)

    def _resumed(self, request: ApiRequest, limit: int) -> _Page:
        token, start = _read_continue(request.query["continue"])
        snapshot = self._snapshots.get(token)
        table = self._state.store.table(request.kind)
        if snapshot is None or snapshot[0] < table.floor:
            raise expired(
                "The provided continue parameter is too old to display a consistent list result. You can start a new "
                "list without the continue parameter."
            )
        rv, found = snapshot
        end = start + limit if limit else len(found)
        if end >= len(found):
            return _Page(found[start:], rv, "", 0)
        return _Page(found[start:end], rv, _continue(token, end), len(found) - end)


def matching(state: ServerState, request: ApiRequest) -> list[StoredObject]:
    """The objects a list or watch is about, in order."""
    kind = request.kind
    matches = selectors.predicate(kind, request.query.get("labelSelector", ""), request.query.get("fieldSelector", ""))
    table = state.store.table(kind)
    rows = [table.rows[key] for key in table.span(request.target.namespace)]
    if request.target.name is not None:
        rows = [row for row in rows if row.key[1] == request.target.name]
    return rows if matches is None else [row for row in rows if matches(row)]


def _encoded(kind: ServedKind, page: _Page) -> bytes:
    meta: Obj = {"resourceVersion": str(page.rv)}
    if page.continue_:
        meta |= {"continue": page.continue_, "remainingItemCount": page.remaining}
    head = encode({"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": meta})
    items = (row.raw for row in page.items) if kind.custom else (row.bare for row in page.items)
    return b'%s,"items":[%s]}' % (head[:-1], b",".join(items))


def _number(query: Mapping[str, str], name: str) -> int:
    text = query.get(name, "")
    if not text:
        return 0
    if not text.isdigit():
        raise bad_request(f"{name}: Invalid value: {text!r}: must be a non-negative number")
    return int(text)


def _continue(token: str, start: int) -> str:
    return base64.urlsafe_b64encode(encode({"token": token, "start": start})).decode()


def _read_continue(text: str) -> tuple[str, int]:
    try:
        read = decode(base64.urlsafe_b64decode(text.encode()))
        return str(read["token"]), int(read["start"])
    except (binascii.Error, msgspec.DecodeError, KeyError, TypeError, ValueError) as error:
        raise bad_request(f"continue key is not valid: {error}") from error
