"""The connections of an aiohttp server: never more than a number, and none that stays in the middle of a request.

aiohttp bounds neither, and counts a connection only when its TLS handshake is done, which is after asyncio has taken
256 KiB for it. So connections are accepted here, one by one, while there are places.
"""

import asyncio
import errno
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, Final

import structlog
from aiohttp import web

from jobset_gate.runtime.server_connection import ServerConnection

BACKLOG: Final = 512
"""Connections that wait in the kernel, where they cost nothing of ours."""
ACCEPT_RETRY_SECONDS: Final = 1.0
"""How long to wait when the process has no open file left for one more."""

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    """What clients may hold."""

    connections: int = 256
    request_seconds: float = 10.0
    """For a handshake and the first request, or for any later request: head, body and the reading of its answer."""
    evict_after_seconds: float = 1.0
    """When all places are taken, a client that has been busy with one request for longer makes room for the next."""


class ConnectionLimiter:
    """Made before the application, which has its `middleware`; `listen` once the runner is set up."""

    def __init__(self, limits: ConnectionLimits | None = None) -> None:
        self.limits = limits or ConnectionLimits()
        self.port = 0
        self._open: dict[web.RequestHandler, ServerConnection] = {}
        self._sockets: list[socket.socket] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self._slot_freed = asyncio.Event()
        self._timer: asyncio.TimerHandle | None = None

    def __len__(self) -> int:
        """How many are open."""
        return len(self._open)

    @web.middleware
    async def middleware(self, request: web.Request, handler: Handler) -> web.StreamResponse:
        """Writes the answer while the time of its request runs; then that of the next one has not begun."""
        connection = self._open.get(request.protocol)
        if connection is None:
            return await handler(request)
        connection.request_started()
        try:
            response = await handler(request)
            with suppress(ConnectionError):  # the client has gone: aiohttp says so nowhere, and neither do we
                await response.prepare(request)
                await response.write_eof()
            return response
        finally:
            connection.request_finished()

    async def listen(self, runner: web.AppRunner, host: str, port: int, context: ssl.SSLContext | None = None) -> None:
        """Returns when it listens. Raises OSError, if the port is taken for example."""
        server: Any = runner.server
        self._sockets = await _bind(host, port)
        self.port = self._sockets[0].getsockname()[1]
        for listening in self._sockets:
            self._spawn(self._accept(listening, server, context), "accept")

    async def close(self) -> None:
        """Nobody new; those who are there stay."""
        ending = [task for task in self._tasks if task.get_name() == "accept"]
        for task in ending:
            task.cancel()
        if ending:
            await asyncio.wait(ending)
        for listening in self._sockets:
            listening.close()
        self._sockets = []

    async def stop(self) -> None:
        """The same, and nobody looks after those who are there any more."""
        await self.close()
        if self._timer is not None:
            self._timer.cancel()
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)

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
            connection = ServerConnection(server(), now=loop.time, on_busy=self._arm_timer, on_closed=self._remove)
            self._open[connection.handler] = connection
            self._arm_timer()
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
        except (OSError, asyncio.CancelledError):  # no TLS, or not in time: nothing to be said to anybody
            self._remove(connection)
        finally:
            connection.handshake = None

    def _remove(self, connection: ServerConnection) -> None:
        self._open.pop(connection.handler, None)
        self._slot_freed.set()

    async def _wait_for_slot(self) -> None:
        """Returns when there is room for one more."""
        while len(self._open) >= self.limits.connections:
            chosen = self._eviction_candidate()
            if chosen is not None:
                self._evict(chosen)
                continue
            self._slot_freed.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(self.limits.evict_after_seconds / 4):
                    await self._slot_freed.wait()

    def _eviction_candidate(self) -> ServerConnection | None:
        """Who has been busy with a request for longest, if for long; else who waits for the next one."""
        busy = min((it for it in self._open.values() if it.busy_since is not None), key=_busy_since, default=None)
        if busy is not None and asyncio.get_running_loop().time() - _busy_since(busy) > self.limits.evict_after_seconds:
            return busy
        return next((it for it in self._open.values() if it.busy_since is None), None)

    def _arm_timer(self) -> None:
        """Somebody has begun a request: looked at when the first of them has had its time."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.limits.request_seconds, self._evict_late)

    def _evict_late(self) -> None:
        """Ends whoever takes too long."""
        loop, self._timer = asyncio.get_running_loop(), None
        busy = {
            connection: connection.busy_since for connection in self._open.values() if connection.busy_since is not None
        }
        late = loop.time() - self.limits.request_seconds
        for connection, since in busy.items():
            if since <= late:
                self._evict(connection)
        left = [since for since in busy.values() if since > late]
        if left:
            self._timer = loop.call_at(min(left) + self.limits.request_seconds, self._evict_late)

    def _evict(self, connection: ServerConnection) -> None:
        connection.evict()
        self._remove(connection)


def _close_unless_made(connection: ServerConnection, accepted: socket.socket, _: asyncio.Task[None]) -> None:
    """A handshake that was cancelled before it began has never had the socket, so nobody else closes it."""
    if connection.transport is None:
        accepted.close()


def _busy_since(connection: ServerConnection) -> float:
    return 0.0 if connection.busy_since is None else connection.busy_since


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
        told = (problem.strerror or str(problem)).lower()
        raise OSError(problem.errno, f"cannot listen on {host}:{port}: {told}") from problem
    return made
