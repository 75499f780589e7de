"""Limits on the connections of an aiohttp server: their number, and the time that a request may take.

aiohttp limits neither, and counts a connection only after its TLS handshake, when asyncio has taken 256 KiB for it. So
connections are accepted here, one by one, while there are free slots.
"""

import asyncio
import errno
import math
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from operator import itemgetter
from typing import Any, Final, cast

import structlog
from aiohttp import web

from jobset_gate.runtime.clock import monotonic

BACKLOG: Final = 512
"""Connections that wait in the kernel, where they cost no memory of ours."""
ACCEPT_RETRY_SECONDS: Final = 1.0
"""How long to wait when the process has no open file left."""

MAX_WRITE_BUFFER: Final = 64 * 1024
"""Bytes of a response that the transport buffers for a client that does not read; above it the writer waits."""
SERVICE_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)
"""Sent on an idle connection before it is closed. A request may be in flight at this moment: its sender takes this as
the response, and an API server then retries elsewhere. A connection that is reset would fail the call."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """How many connections clients may hold, and for how long."""

    connections: int = 256
    request_seconds: float = 10.0
    """For a handshake and the first request, or for any later request: head, body and the reading of its response."""
    evict_after_seconds: float = 1.0
    """When all slots are taken, a connection that has been busy with one request for longer is evicted."""


class ServerConnection(asyncio.Protocol):
    """Between a transport and aiohttp's handler: passes everything on, and knows since when a request is unfinished."""

    def __init__(
        self, handler: web.RequestHandler, on_busy: Callable[[], None], on_closed: Callable[["ServerConnection"], None]
    ) -> None:
        """`on_busy` is called when a request begins, `on_closed` when the connection is closed."""
        self.handler, self._on_busy, self._on_closed = handler, on_busy, on_closed
        self.handshake: asyncio.Task[None] | None = None
        """The TLS handshake, while it lasts."""
        self.transport: asyncio.Transport | None = None
        self.busy_since: float | None = None
        """When it was accepted, or its unfinished request began; None while it is idle."""
        self.request_started()

    def request_started(self) -> None:
        """A request has begun, or goes on."""
        if self.busy_since is None:
            self.busy_since = monotonic()
            self._on_busy()

    def evict(self) -> None:
        """Closes the connection at once; an idle one is sent SERVICE_UNAVAILABLE first."""
        if self.transport is None:
            if self.handshake is not None:
                self.handshake.cancel()
        elif self.busy_since is None:
            self.transport.write(SERVICE_UNAVAILABLE)
            self.transport.close()
        else:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """After the TLS handshake, if there is one."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=MAX_WRITE_BUFFER)
        self.handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Part of a request."""
        self.request_started()
        self.handler.data_received(data)

    def eof_received(self) -> None:
        """The client sends no more."""
        self.handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """The connection is closed, by either side."""
        self._on_closed(self)
        self.handler.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read."""
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        """The client reads again."""
        self.handler.resume_writing()


class ConnectionLimiter:
    """Create it before the application, which gets its `middleware`; `listen` and `stop` run the server."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        self.url = ""
        """Without a path; "" before it listens."""
        self._runner: web.AppRunner | None = None
        self._open: dict[web.RequestHandler, ServerConnection] = {}
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._slot_freed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """Open connections."""
        return len(self._open)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Writes the response within the time of its request."""
        connection = self._open.get(request.protocol)
        if connection is None:
            return await handler(request)
        connection.request_started()
        try:
            response = await handler(request)
            with suppress(ConnectionError):  # the client has gone; aiohttp does not log that either
                await response.prepare(request)
                await response.write_eof()
            return response
        finally:
            connection.busy_since = None

    async def release_stream(self, request: web.Request, response: web.StreamResponse) -> None:
        """For `on_response_prepare`: server-sent events are limited no more. Their sender bounds their number."""
        if response.content_type == "text/event-stream":
            response.force_close()
            self._open.pop(request.protocol, None)
            self._slot_freed.set()

    async def listen(self, runner: web.AppRunner, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        """Sets the runner up and returns when it listens. Raises OSError, for example if the port is taken."""
        self._runner = runner
        await runner.setup()
        server: Any = runner.server
        self._sockets = await _bind(host, port)
        shown, taken = f"[{host}]" if ":" in host else host, self._sockets[0].getsockname()[1]
        self.url = f"{'http' if context is None else 'https'}://{shown}:{taken}"
        for listening in self._sockets:
            self._spawn(self._accept(listening, server, context), "accept")

    async def close(self) -> None:
        """Accepts no more connections; open ones stay."""
        await _cancel([task for task in self._tasks if task.get_name() == "accept"])
        for listening in self._sockets:
            listening.close()
        self._sockets = []

    def refuse_idle(self) -> None:
        """Sends SERVICE_UNAVAILABLE on idle connections, so that their clients close them."""
        for connection in self._open.values():
            if connection.busy_since is None and connection.transport is not None:
                connection.transport.write(SERVICE_UNAVAILABLE)

    async def stop(self) -> None:
        """The same, then ends the runner; connections that it leaves open are no longer limited."""
        await self.close()
        if self._runner is not None:
            await self._runner.cleanup()
        if self._timer is not None:
            self._timer.cancel()
        await _cancel(list(self._tasks))

    def _spawn(self, work: Any, name: str) -> asyncio.Task[None]:
        task: asyncio.Task[None] = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _accept(self, listening: socket.socket, server: Any, context: ssl.SSLContext | None) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await self._wait_for_slot()
            try:
                accepted, _ = await loop.sock_accept(listening)
            except OSError as problem:
                if problem.errno in (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM):
                    log.warning("no connection can be accepted", problem=str(problem))
                    await asyncio.sleep(ACCEPT_RETRY_SECONDS)
                continue
            connection = ServerConnection(server(), self._arm_timer, self._remove)
            self._open[connection.handler] = connection
            connection.handshake = self._spawn(self._shake_hands(connection, accepted, context), "handshake")
            connection.handshake.add_done_callback(partial(_close_unless_made, connection, accepted))

    async def _shake_hands(
        self, connection: ServerConnection, accepted: socket.socket, context: ssl.SSLContext | None
    ) -> None:
        seconds = None if context is None else self.limits.request_seconds
        try:
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: connection,
                accepted,
                ssl=context,
                ssl_handshake_timeout=seconds,
                ssl_shutdown_timeout=None if seconds is None else self.limits.evict_after_seconds,
            )
        except (OSError, asyncio.CancelledError):  # no TLS, or not in time
            self._remove(connection)
        finally:
            connection.handshake = None

    def _remove(self, connection: ServerConnection) -> None:
        self._open.pop(connection.handler, None)
        self._slot_freed.set()

    async def _wait_for_slot(self) -> None:
        def has_slot() -> bool:
            while len(self._open) >= self.limits.connections and (chosen := self._eviction_candidate()) is not None:
                self._evict(chosen)
            return len(self._open) < self.limits.connections

        await wait_for_room(has_slot, self._slot_freed, self.limits.evict_after_seconds)

    def _eviction_candidate(self) -> ServerConnection | None:
        """The connection that has been busy for longest, if for long enough; else an idle one."""
        since, longest = min(self._busy(), key=itemgetter(0), default=(math.inf, None))
        if monotonic() - since > self.limits.evict_after_seconds:
            return longest
        return next((it for it in self._open.values() if it.busy_since is None), None)

    def _busy(self) -> list[tuple[float, ServerConnection]]:
        return [(it.busy_since, it) for it in self._open.values() if it.busy_since is not None]

    def _arm_timer(self) -> None:
        """A request has begun: the timer fires when the oldest request is out of time."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.limits.request_seconds, self._evict_late)

    def _evict_late(self) -> None:
        self._timer = None
        busy, late = self._busy(), monotonic() - self.limits.request_seconds
        for since, connection in busy:
            if since <= late:
                self._evict(connection)
        left = [since for since, _ in busy if since > late]
        if left:
            due = min(left) + self.limits.request_seconds
            self._timer = asyncio.get_running_loop().call_at(due, self._evict_late)

    def _evict(self, connection: ServerConnection) -> None:
        connection.evict()
        self._remove(connection)


async def wait_for_room(has_room: Callable[[], bool], freed: asyncio.Event, evict_after_seconds: float) -> None:
    """Returns once `has_room` holds, which may evict clients: asked when `freed` is set, and often enough to evict."""
    while not has_room():
        freed.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(evict_after_seconds / 4):
                await freed.wait()


def _close_unless_made(connection: ServerConnection, accepted: socket.socket, _: asyncio.Task[None]) -> None:
    """A handshake that was cancelled before it began never had the socket, so nothing else closes it."""
    if connection.transport is None:
        accepted.close()


async def _cancel(tasks: list[asyncio.Task[None]]) -> None:
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


async def _bind(host: str, port: int) -> list[socket.socket]:
    """A listening socket for each address of the host; all addresses for an empty one."""
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    made: list[socket.socket] = []
    try:
        for family, address in dict.fromkeys((family, address) for family, _, _, _, address in found):
            made.append(socket.create_server(address[:2], family=family, backlog=BACKLOG))
            made[-1].setblocking(False)
    except OSError as problem:
        for listening in made:
            listening.close()
        reason = (problem.strerror or str(problem)).lower()
        raise OSError(problem.errno, f"cannot listen on {host}:{port}: {reason}") from problem
    return made
