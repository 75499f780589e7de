"""HTTP in, HTTP out: requests to handlers, errors to Status bodies, and the little discovery that clients need."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from jobset_gate.fake.apiserver import deletes, reads, writes
from jobset_gate.fake.apiserver.kinds import ServedKinds
from jobset_gate.fake.apiserver.requests import ApiRequest, RequestTarget, ServerState, parse_target
from jobset_gate.fake.apiserver.responses import ApiResponse, StatusError, encode, not_allowed
from jobset_gate.fake.apiserver.watches import Watch
from jobset_gate.fake.faults import Fail

LARGEST_BODY = 8 * 1024 * 1024
_JSON = "application/json"
_VERSION = {"major": "1", "minor": "36", "gitVersion": "v1.36.0-jobset-gate-fake", "platform": "linux/amd64"}
_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_log = logging.getLogger(__name__)

Handler = Callable[[ServerState, ApiRequest], Awaitable[ApiResponse]]
_HANDLERS: dict[str, Handler] = {
    "get": reads.get_object,
    "list": reads.list_objects,
    "create": writes.create,
    "update": writes.update,
    "patch": writes.patch,
    "delete": deletes.delete,
    "deletecollection": deletes.delete_collection,
}


class HttpHandler:
    """`handle` is an aiohttp handler."""

    def __init__(self, state: ServerState) -> None:
        self._state = state

    async def handle(self, http: web.BaseRequest) -> web.StreamResponse:
        if http.method == "GET" and (body := _discovery(self._state.kinds, http.path)) is not None:
            return web.Response(body=body, content_type="text/plain" if body == b"ok" else _JSON)
        warnings: list[str] = []
        try:
            request = await self._read(http)
            warnings = request.warnings
            failure = await self._state.faults.before(request)
            if failure is not None:
                return _failure(failure)
            if request.verb == "watch":
                return await self._watch(http, request)
            response = await _HANDLERS[request.verb](self._state, request)
            await self._state.faults.after(request)
        except StatusError as error:
            response = ApiResponse(error.code, encode(error.status()), error.retry_after)
        except Exception:  # noqa: BLE001 - the client gets an answer to any bug of the server
            _log.exception("%s %s", http.method, http.path)
            broken = StatusError(500, "Internal error occurred: see the log of the embedded API server")
            response = ApiResponse(500, encode(broken.status()))
        return _response(response, warnings)

    async def _read(self, http: web.BaseRequest) -> ApiRequest:
        target = parse_target(self._state.kinds, http.path)
        query, headers = dict(http.query), http.headers
        content_type, agent = headers.get("Content-Type", _JSON), headers.get("User-Agent", "unknown")
        verb = _verb(http.method, target, query)
        return ApiRequest(verb, target, query, await _body(http), content_type, agent)

    async def _watch(self, http: web.BaseRequest, request: ApiRequest) -> web.StreamResponse:
        faults = self._state.faults
        watch = Watch(self._state, request)
        response = web.StreamResponse(headers={"Content-Type": _JSON})
        faults.watches[watch] = request
        try:
            await response.prepare(http)
            async for lines in watch.batches():
                if not faults.is_silent(watch):
                    await response.write(lines)
            if faults.is_silent(watch):
                # Half-open: the stream never ends either, until the client goes away or the server stops.
                await asyncio.get_running_loop().create_future()
            await response.write_eof()
        except ConnectionError:
            _log.debug("watch of %s: the client is gone", request.kind.plural)
        finally:
            watch.close()
            faults.watches.pop(watch, None)
        return response


def _discovery(kinds: ServedKinds, path: str) -> bytes | None:
    """Health, version, and the documents about one API group: not enough for kubectl."""
    match path.strip("/").split("/"):
        case ["healthz" | "readyz" | "livez"]:
            return b"ok"
        case ["version"]:
            return encode(_VERSION)
        case ["apis", group]:
            versions = {kind.version: None for kind in kinds if kind.group == group}
            listed = [{"groupVersion": f"{group}/{version}", "version": version} for version in versions]
            return encode({"kind": "APIGroup", "name": group, "versions": listed}) if listed else None
        case ["apis", group, version]:
            plurals = [{"name": kind.plural} for kind in kinds if (kind.group, kind.version) == (group, version)]
            return encode({"kind": "APIResourceList", "resources": plurals}) if plurals else None
        case _:
            return None


def _verb(method: str, target: RequestTarget, query: dict[str, str]) -> str:
    if method == "GET":
        if query.get("watch", "").lower() in ("1", "true", "t"):
            return "watch"
        return "get" if target.name else "list"
    verb = _VERBS.get(method)
    if verb is None:
        raise not_allowed()
    return "deletecollection" if verb == "delete" and target.name is None else verb


async def _body(http: web.BaseRequest) -> bytes:
    if not http.can_read_body:
        return b""
    chunks, size = [], 0
    async for chunk in http.content.iter_any():
        size += len(chunk)
        if size > LARGEST_BODY:
            raise StatusError(413, f"Request entity too large: limit is {LARGEST_BODY}")
        chunks.append(chunk)
    return b"".join(chunks)


def _response(answer: ApiResponse, warnings: list[str]) -> web.Response:
    response = web.Response(status=answer.code, body=answer.body, content_type=_JSON)
    if answer.retry_after is not None:
        response.headers["Retry-After"] = str(answer.retry_after)
    for text in warnings:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response


def _failure(fail: Fail) -> web.Response:
    error = StatusError(fail.status, fail.message, retry_after=fail.retry_after)
    body = encode(error.status()) if fail.body is None else fail.body
    return _response(ApiResponse(fail.status, body, fail.retry_after), [])
