"""One connection of an aiohttp server: it passes everything on, and knows since when it owes the rest of a request."""

import asyncio
from collections.abc import Callable
from typing import Final, cast

from aiohttp import web

MAX_WRITE_BUFFER: Final = 64 * 1024
"""Bytes of an answer that wait in the transport for a client that does not read; above it the writer waits."""
SERVICE_UNAVAILABLE: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"
)
"""Said on a connection that waits for its next request. A request may be on its way at this very moment: its sender
takes this as the answer to it, and an API server then asks again elsewhere. To be cut off would fail the call."""


class ServerConnection(asyncio.Protocol):
    """Between a transport and aiohttp's handler of it."""

    def __init__(
        self,
        handler: web.RequestHandler,
        *,
        now: Callable[[], float],
        on_busy: Callable[[], None],
        on_closed: Callable[["ServerConnection"], None],
    ) -> None:
        """`busy` is told of each request that begins, `gone` when the connection is closed."""
        self.handler, self._now, self._busy, self._gone = handler, now, on_busy, on_closed
        self.handshake: asyncio.Task[None] | None = None
        """The TLS handshake, as long as it lasts."""
        self.transport: asyncio.Transport | None = None
        self.busy_since: float | None = now()
        """When it was accepted, or began the request that is not answered yet; None while it waits for the next one."""

    def request_started(self) -> None:
        """A request has begun, or goes on."""
        if self.busy_since is None:
            self.busy_since = self._now()
            self._busy()

    def request_finished(self) -> None:
        """The answer is written."""
        self.busy_since = None

    def evict(self) -> None:
        """At once: what it was about to say is of no interest. One that waits for its next request is told so."""
        if self.transport is None:
            if self.handshake is not None:
                self.handshake.cancel()
        elif self.busy_since is None:
            self.transport.write(SERVICE_UNAVAILABLE)
            self.transport.close()
        else:
            self.transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """TLS is agreed on, if there is any."""
        self.transport = cast("asyncio.Transport", transport)
        self.transport.set_write_buffer_limits(high=MAX_WRITE_BUFFER)
        self.handler.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """A part of a request."""
        self.request_started()
        self.handler.data_received(data)

    def eof_received(self) -> None:
        """The client says nothing more."""
        self.handler.eof_received()

    def connection_lost(self, exc: Exception | None) -> None:
        """It is closed, by whomever."""
        self._gone(self)
        self.handler.connection_lost(exc)

    def pause_writing(self) -> None:
        """The client does not read."""
        self.handler.pause_writing()

    def resume_writing(self) -> None:
        """It does again."""
        self.handler.resume_writing()
