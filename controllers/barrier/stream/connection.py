"""One connection of the gate stream: as much HTTP as one request for a path and one answer need.

By hand on asyncio's own transports, since it is held ten thousand times: with aiohttp's server each request that waits
took 11 KiB (2 here), all of them took four times as long to come back after a fail-over, and every full garbage
collection stopped the loop for 200 ms. What makes HTTP hard is left out: headers and bodies mean nothing here, nothing
follows the first request, and the answer ends with the connection.
"""

import asyncio
from http import HTTPStatus
from typing import Protocol, cast

from controllers.barrier.stream.keepalive import EMPTY_LINE
from controllers.barrier.stream.registry import RequestRefused, StreamRequest

MAX_REQUEST_BYTES = 4096
"""Bytes of a request with all its headers; a barrier's has 400, the proxy of a mesh adds up to 2,000."""

_END = b"\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"


class ConnectionHandler(Protocol):
    """What becomes of connections; none of its methods may raise anything but what it says."""

    def on_open(self, connection: "StreamConnection") -> None:
        """It has been opened."""

    def on_request(self, connection: "StreamConnection", line: str) -> StreamRequest:
        """It asks for this. Raises Refused."""

    def on_answer(self, connection: "StreamConnection") -> None:
        """It has been told its verdict."""

    def on_finish(self, connection: "StreamConnection") -> None:
        """It has been told everything; what remains is the client's close."""

    def on_refused(self, refusal: RequestRefused) -> None:
        """A request was turned away."""

    def on_close(self, connection: "StreamConnection") -> None:
        """It is gone."""


class StreamConnection(asyncio.Protocol):
    """`request` once it has been admitted; `transport` from its beginning to its end."""

    __slots__ = ("_handler", "_opened", "_read", "request", "transport")

    def __init__(self, handler: ConnectionHandler) -> None:
        self._handler = handler
        self._read: bytes | None = b""
        """What has come of the request; None once it is whole."""
        self._opened = False
        self.request: StreamRequest | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._handler.on_open(self)

    def data_received(self, data: bytes) -> None:
        if self._read is None:
            return  # it has asked already
        self._read += data[: MAX_REQUEST_BYTES + 1]
        if 0 <= self._read.find(_END) <= MAX_REQUEST_BYTES - len(_END):
            line = self._read.partition(b"\r\n")[0].decode("latin-1")
            self._read = None
            self._handle_request(line)
        elif len(self._read) > MAX_REQUEST_BYTES:
            self._refuse(RequestRefused(431, "malformed", f"more than {MAX_REQUEST_BYTES} bytes of headers"))

    def connection_lost(self, _: Exception | None) -> None:
        self._handler.on_close(self)
        self.transport = None

    def send_answer(self, text: bytes) -> bool:
        """Sends the answer. False if the client has gone."""
        if self.transport is None or self.transport.is_closing():
            return False
        # Ten thousand clients that close at once would hold up the loop for long: whoever is told is asked in turn.
        self.transport.pause_reading()
        self.transport.write(text if self._opened else _HEAD + text)
        self._handler.on_answer(self)
        return not self.transport.is_closing()  # a write into a connection that was reset raises nothing

    def finish(self) -> None:
        """Nothing follows. This end is closed for now; when the client closes the other, it has heard."""
        if self.transport is None or self.transport.is_closing():
            return
        try:
            self.transport.write_eof()
        except OSError:  # reset meanwhile
            self.transport.abort()
            return
        self._handler.on_finish(self)

    def disconnect(self) -> None:
        """Closes it, whatever the client does."""
        if self.transport is not None:
            self.transport.abort()

    def _handle_request(self, line: str) -> None:
        try:
            self.request = self._handler.on_request(self, line)
        except RequestRefused as refusal:
            self._refuse(refusal)
            return
        if self.transport is not None and not self.request.answered:
            # The empty line tells the client that it is being held, and proxies to pass on the head.
            self.transport.write(_HEAD + EMPTY_LINE)
            self._opened = True

    def _refuse(self, refusal: RequestRefused) -> None:
        self._read = None
        status, text = HTTPStatus(refusal.status), f"{refusal}\n".encode()
        head = f"HTTP/1.1 {status.value} {status.phrase}\r\nContent-Type: text/plain\r\nContent-Length: {len(text)}\r\n"
        if self.transport is not None:
            self.transport.write(f"{head}Connection: close\r\n\r\n".encode() + text)
            self.transport.close()
        self._handler.on_refused(refusal)
