"""The HTTP edge: bytes in, bytes out, problems turned into Status bodies."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from aiohttp import web

from jobset_gate.fake.apiserver import deletes, discovery, reads, requests, writes
from jobset_gate.fake.apiserver.encoding import encode
from jobset_gate.fake.apiserver.requests import ApiRequest, RequestTarget
from jobset_gate.fake.apiserver.state import ApiResponse, ServerState
from jobset_gate.fake.apiserver.status_errors import StatusError, no_such_path, not_allowed
from jobset_gate.fake.apiserver.watches import Watch
from jobset_gate.fake.faults import Dropped, Fail

LARGEST_BODY = 8 * 1024 * 1024
_JSON = "application/json"
_log = logging.getLogger(__name__)

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
Handler = Callable[[ServerState, ApiRequest], Awaitable[ApiResponse]]
_HANDLERS: dict[str, Handler] = {
    "create": writes.create,
    "update": writes.update,
    "patch": writes.patch,
    "delete": deletes.delete,
    "deletecollection": deletes.delete_collection,
}


class HttpHandler:
    """`handle` is an aiohttp handler."""

    def __init__(self, core: ServerState) -> None:
        self._core = core
        self._lists = reads.ListHandler(core)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        if request.method == "GET" and (body := discovery.answer(self._core.kinds, request.path)) is not None:
            return web.Response(body=body, content_type="text/plain" if body == b"ok" else _JSON)
        warnings: list[str] = []
        try:
            call = await self._call(request)
            warnings = call.warnings
            failed = await self._core.faults.before(call)
            if failed is not None:
                return _failure(failed)
            if call.verb == "watch":
                return await self._watch(request, call)
            answer = await self._serve(call)
            await self._core.faults.after(call)
        except StatusError as problem:
            answer = ApiResponse(problem.code, encode(problem.status()), problem.retry_after)
        except Dropped:
            return _hang_up(request)
        except Exception:  # noqa: BLE001  # whatever broke behind the edge, the client is owed an answer
            _log.exception("%s %s", request.method, request.path)
            broken = StatusError(500, "Internal error occurred: see the log of the embedded API server")
            answer = ApiResponse(500, encode(broken.status()))
        return _response(answer, warnings)

    async def _call(self, request: web.BaseRequest) -> ApiRequest:
        target = requests.target(self._core.kinds, request.path)
        query = dict(request.query)
        headers = request.headers
        return ApiRequest(
            _verb(request.method, target, query),
            target,
            query,
            await _body(request),
            headers.get("Content-Type", _JSON),
            headers.get("User-Agent", "unknown"),
        )

    async def _serve(self, call: ApiRequest) -> ApiResponse:
        if call.verb == "list":
            return self._lists.list(call)
        if call.verb == "get":
            if call.target.subresource and not (call.target.subresource == "status" and call.kind.status):
                raise no_such_path()
            return reads.get(self._core, call)
        return await _HANDLERS[call.verb](self._core, call)

    async def _watch(self, request: web.BaseRequest, call: ApiRequest) -> web.StreamResponse:
        faults = self._core.faults
        watch = Watch(self._core, call)
        response = web.StreamResponse(headers={"Content-Type": _JSON})
        faults.watches[watch] = call
        try:
            await response.prepare(request)
            async for lines in watch.batches():
                if faults.is_silent(watch):
                    continue
                await response.write(lines)
            if faults.is_silent(watch):
                # Half-open: the stream never ends either, until the client goes away or the server stops.
                await asyncio.get_running_loop().create_future()
            await response.write_eof()
        except ConnectionError:
            # The client went away: nobody is left to tell.
            _log.debug("watch of %s: the client is gone", call.kind.plural)
        finally:
            watch.close()
            faults.watches.pop(watch, None)
        return response


def _verb(method: str, target: RequestTarget, query: dict[str, str]) -> str:
    if method in ("GET", "HEAD"):
        if query.get("watch", "").lower() in ("1", "true", "t"):
            return "watch"
        return "get" if target.name else "list"
    verb = _VERBS.get(method)
    if verb is None:
        raise not_allowed()
    return "deletecollection" if verb == "delete" and target.name is None else verb


async def _body(request: web.BaseRequest) -> bytes:
    if not request.can_read_body:
        return b""
    chunks, size = [], 0
    async for chunk in request.content.iter_any():
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
    problem = StatusError(fail.status, fail.message, retry_after=fail.retry_after)
    body = encode(problem.status()) if fail.body is None else fail.body
    return _response(ApiResponse(fail.status, body, fail.retry_after), [])


def _hang_up(request: web.BaseRequest) -> web.StreamResponse:
    """Close the connection under the client's feet."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)
