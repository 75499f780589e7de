"""GET of one object and LIST of many, paged from bytes that are already encoded."""

from __future__ import annotations

import base64
import binascii
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass

import msgspec

from jobset_gate.fake.apiserver import selectors
from jobset_gate.fake.apiserver.encoding import Obj, decode, encode
from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.requests import ApiRequest
from jobset_gate.fake.apiserver.state import ApiResponse, ServerState
from jobset_gate.fake.apiserver.status_errors import StatusError, bad_request, expired
from jobset_gate.fake.apiserver.store import StoredObject

_SNAPSHOTS_KEPT = 64


def get(core: ServerState, call: ApiRequest) -> ApiResponse:
    target = call.target
    return ApiResponse(200, core.existing(call.kind, target.namespace, target.name).raw)


@dataclass(frozen=True, slots=True)
class _Page:
    items: list[StoredObject]
    rv: int
    continue_: str
    remaining: int


class ListHandler:
    """Serves lists; a list in pages shows the state of its first page throughout."""

    def __init__(self, core: ServerState) -> None:
        self._core = core
        self._snapshots: OrderedDict[str, tuple[int, list[StoredObject]]] = OrderedDict()

    def list(self, call: ApiRequest) -> ApiResponse:
        limit = _number(call.query, "limit")
        page = self._resumed(call, limit) if call.query.get("continue") else self._first(call, limit)
        return ApiResponse(200, _encoded(call.kind, page))

    def _first(self, call: ApiRequest, limit: int) -> _Page:
        rv = _number(call.query, "resourceVersion")
        revision = self._core.store.revision
        if rv > revision:
            raise StatusError(504, f"Too large resource version: {rv}, current: {revision}", retry_after=1)
        found = matching(self._core, call)
        if not limit or len(found) <= limit:
            return _Page(found, revision, "", 0)
        token = self._core.new_uid()
        self._snapshots[token] = revision, found
        if len(self._snapshots) > _SNAPSHOTS_KEPT:
            self._snapshots.popitem(last=False)
        return _Page(found[:limit], revision, _continue(token, limit), len(found) - limit)

    def _resumed(self, call: ApiRequest, limit: int) -> _Page:
        token, start = _read_continue(call.query["continue"])
        snapshot = self._snapshots.get(token)
        table = self._core.store.table(call.kind)
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


def matching(core: ServerState, call: ApiRequest) -> list[StoredObject]:
    """The objects a list or watch is about, in order."""
    kind = call.kind
    matches = selectors.predicate(kind, call.query.get("labelSelector", ""), call.query.get("fieldSelector", ""))
    table = core.store.table(kind)
    rows = [table.rows[key] for key in table.span(call.target.namespace)]
    if call.target.name is not None:
        rows = [row for row in rows if row.key[1] == call.target.name]
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
