"""The embedded API server: HTTP in, HTTP out, the little discovery that clients need, and the kinds of stored CRDs."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable
from typing import Self

from aiohttp import web

from jobset_gate_demo.fake.apiserver import deletes, reads, writes
from jobset_gate_demo.fake.apiserver.admission import WebhookAdmission
from jobset_gate_demo.fake.apiserver.deletes import GarbageCollector
from jobset_gate_demo.fake.apiserver.kinds import CRD_KIND, ServedKind, ServedKinds, kinds_of_crd
from jobset_gate_demo.fake.apiserver.reads import Watch
from jobset_gate_demo.fake.apiserver.requests import ApiRequest, RequestTarget, ServerState, parse_target
from jobset_gate_demo.fake.apiserver.responses import ApiResponse, StatusError, encode
from jobset_gate_demo.fake.apiserver.store import ObjectStore, StoreEvent

_NEVER = 1e9
"""Seconds: clients close idle connections, since in virtual time every minute passes at once."""
_LONGEST_LINE = 64 * 1024


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
}


class RequestHooks:
    """Called around each request. These do nothing; tests make requests fail with others."""

    def __init__(self) -> None:
        self.watches: dict[Watch, ApiRequest] = {}
        """Those that are open."""

    async def before(self, request: ApiRequest) -> None:
        """Before a request is served. Errors: StatusError."""

    def after(self, request: ApiRequest) -> None:
        """When a request is served, and before its answer goes out; not called for watches."""

    def is_silent(self, watch: Watch) -> bool:  # noqa: ARG002
        """Whether the connection of this watch is half open."""
        return False


class ApiServer:
    """A Kubernetes API server in this process, on 127.0.0.1 and a free port, in memory, without authentication.

    clock: seconds since 1970, for all times it writes.
    """

    def __init__(
        self,
        *,
        hooks: RequestHooks | None = None,
        clock: Callable[[], float] = time.time,
        garbage_collection: bool = True,
    ) -> None:
        self._hooks = hooks or RequestHooks()
        self.store = ObjectStore()
        self._state = ServerState(self.store, clock, random.Random())
        self._state.admission = self._admission = WebhookAdmission(self._state)
        if garbage_collection:
            GarbageCollector(self._state)
        self._runner: web.ServerRunner | None = None
        self._port = 0
        self.store.listeners.append(self._serve_crds)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}"

    async def start(self) -> None:
        server = web.Server(
            self._handle,
            handler_cancellation=True,
            keepalive_timeout=_NEVER,
            access_log=None,
            max_line_size=_LONGEST_LINE,
            max_field_size=_LONGEST_LINE,
        )
        self._runner = web.ServerRunner(server, shutdown_timeout=0.1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self._port = self._runner.addresses[0][1]

    async def stop(self) -> None:
        """Close everything; the objects stay."""
        for watch in tuple(self._hooks.watches):
            watch.close()
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None
        await self._admission.close()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    # --- CRDs ---------------------------------------------------------------------------------------------------------

    def _serve_crds(self, kind: ServedKind, change: StoreEvent) -> None:
        """Keep the served kinds those of the stored CRDs."""
        if kind.key != CRD_KIND.key or change.deleted:
            return
        crd = change.now.fresh()
        for served in kinds_of_crd(crd):
            self._state.kinds.put(served)
        if change.old is None:
            established = {"type": "Established", "status": "True", "reason": "InitialNamesAccepted", "message": ""}
            crd["status"] = {"conditions": [{**established, "lastTransitionTime": self._state.now()}]}
            self.store.commit(CRD_KIND, crd)

    # --- Requests -----------------------------------------------------------------------------------------------------

    async def _handle(self, http: web.BaseRequest) -> web.StreamResponse:
        if http.method == "GET" and (body := _discovery(self._state.kinds, http.path)) is not None:
            return web.Response(body=body, content_type=_JSON)
        warnings: list[str] = []
        try:
            request = await self._read(http)
            warnings = request.warnings
            await self._hooks.before(request)
            if request.verb == "watch":
                return await self._watch(http, request)
            response = await _HANDLERS[request.verb](self._state, request)
            self._hooks.after(request)
        except StatusError as error:
            response = ApiResponse(error.code, encode(error.status()), error.retry_after)
        return _response(response, warnings)

    async def _read(self, http: web.BaseRequest) -> ApiRequest:
        target = parse_target(self._state.kinds, http.path)
        query, headers = dict(http.query), http.headers
        media_type, agent = headers.get("Content-Type", _JSON), headers.get("User-Agent", "unknown")
        verb = _verb(http.method, target, query)
        return ApiRequest(verb, target, query, await http.content.read(), media_type.partition(";")[0], agent)

    async def _watch(self, http: web.BaseRequest, request: ApiRequest) -> web.StreamResponse:
        watch = Watch(self._state, request)
        response = web.StreamResponse(headers={"Content-Type": _JSON})
        self._hooks.watches[watch] = request
        try:
            await response.prepare(http)
            async for lines in watch.batches():
                if not self._hooks.is_silent(watch):
                    await response.write(lines)
            if self._hooks.is_silent(watch):
                # Half-open: the stream never ends either, until the client goes away or the server stops.
                await asyncio.get_running_loop().create_future()
            await response.write_eof()
        except ConnectionError:
            _log.debug("watch of %s: the client is gone", request.kind.plural)
        finally:
            watch.close()
            self._hooks.watches.pop(watch, None)
        return response


def _discovery(kinds: ServedKinds, path: str) -> bytes | None:
    """The version, and the kinds of an API group's version: not enough for kubectl."""
    match path.strip("/").split("/"):
        case ["version"]:
            return encode(_VERSION)
        case ["apis", group, version]:
            plurals = [{"name": kind.plural} for kind in kinds if (kind.group, kind.version) == (group, version)]
            return encode({"kind": "APIResourceList", "resources": plurals}) if plurals else None
        case _:
            return None


def _verb(method: str, target: RequestTarget, query: dict[str, str]) -> str:
    if method == "GET":
        if query.get("watch") in ("1", "true"):
            return "watch"
        return "get" if target.name else "list"
    return _VERBS[method]


def _response(answer: ApiResponse, warnings: list[str]) -> web.Response:
    response = web.Response(status=answer.code, body=answer.body, content_type=_JSON)
    if answer.retry_after is not None:
        response.headers["Retry-After"] = str(answer.retry_after)
    for text in warnings:
        escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ").replace("\r", " ")
        response.headers.add("Warning", f'299 - "{escaped}"')
    return response
