"""GET of one object and LIST of many, from bytes that are already encoded, page by page.

A page begins behind the last key of the page before. Pages are of different moments, unlike a real server's. All of
them give the resourceVersion of the first, so a watch from there shows what has changed in between.
"""

from __future__ import annotations

from bisect import bisect_right

from jobset_gate.fake.apiserver import selectors
from jobset_gate.fake.apiserver.requests import ApiRequest, ServerState
from jobset_gate.fake.apiserver.responses import ApiResponse, StatusError, bad_request, encode, no_such_path
from jobset_gate.fake.apiserver.store import StoredObject


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
