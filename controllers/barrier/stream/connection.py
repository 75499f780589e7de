"""One connection of the gate stream: the HTTP that one request for a path and one answer need.

Written on asyncio's transports, because ten thousand connections are held: with aiohttp's server a waiting request took
11 KiB (2 here), reconnecting after a fail-over took four times as long, and a full garbage collection stopped the loop
for 200 ms. Headers and bodies are ignored, one request is read, and the answer ends with the connection.
"""

import asyncio
from collections import OrderedDict
from http import HTTPStatus
from typing import Protocol, cast

from controllers.barrier.stream.delivery import CHUNK
from controllers.barrier.stream.registry import RequestRefused, StreamRequest

MAX_REQUEST_BYTES = 4096
"""Bytes of request line and headers; a barrier sends 400, a service mesh's proxy adds up to 2,000."""

KEEPALIVE_INTERVAL = 15.0
"""Seconds between two empty lines; clients close a connection that is silent for longer."""

EMPTY_LINE = b"\n"

_END = b"\r\n\r\n"
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n"


class ConnectionHandler(Protocol):
    """Callbacks of a connection. They raise nothing but what is documented."""

    def on_open(self, connection: "StreamConnection") -> None:
        """The connection is open."""

    def on_request(self, connection: "StreamConnection", line: str) -> StreamRequest:
        """Request line. Raises RequestRefused."""

    def on_answer(self, connection: "StreamConnection") -> None:
        """The verdict has been sent."""

    def on_finish(self, connection: "StreamConnection") -> None:
        """The answer is complete; the client closes next."""

    def on_refused(self, refusal: RequestRefused) -> None:
        """The request was refused."""

    def on_close(self, connection: "StreamConnection") -> None:
        """The connection is closed."""


class StreamConnection(asyncio.Protocol):
    """`request` once it is admitted; `transport` while the connection is open."""

    __slots__ = ("_handler", "_opened", "_read", "request", "transport")

    def __init__(self, handler: ConnectionHandler) -> None:
        self._handler = handler
        self._read: bytes | None = b""
        """The request so far; None once it is complete."""
        self._opened = False
        self.request: StreamRequest | None = None
        self.transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self._handler.on_open(self)

    def data_received(self, data: bytes) -> None:
        if self._read is None:
            return  # the request is complete
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
        """Sends the answer. False if the client is gone."""
        if self.transport is None or self.transport.is_closing():
            return False
        # Ten thousand clients that close at once would block the loop: the CloseWatcher polls them in chunks instead.
        self.transport.pause_reading()
        self.transport.write(text if self._opened else _HEAD + text)
        self._handler.on_answer(self)
        return not self.transport.is_closing()  # a write into a connection that was reset raises nothing

    def finish(self) -> None:
        """Closes this end. A client that closes the other end has received the answer."""
        if self.transport is None or self.transport.is_closing():
            return
        try:
            self.transport.write_eof()
        except OSError:  # reset meanwhile
            self.transport.abort()
            return
        self._handler.on_finish(self)

    def disconnect(self) -> None:
        """Aborts the connection."""
        if self.transport is not None:
            self.transport.abort()

    def _handle_request(self, line: str) -> None:
        try:
            self.request = self._handler.on_request(self, line)
        except RequestRefused as refusal:
            self._refuse(refusal)
            return
        if self.transport is not None and not self.request.answered:
            # The empty line shows the client that its request is held, and makes proxies forward the head.
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


class Keepalive:
    """Sends an empty line to every held connection from time to time: one timer for all of them."""

    def __init__(self) -> None:
        self._last: OrderedDict[asyncio.Transport, float] = OrderedDict()

    def add_transport(self, held: asyncio.Transport) -> None:
        """Data was just sent; keep the connection alive from now on."""
        self._last[held] = asyncio.get_running_loop().time()

    def remove_transport(self, held: asyncio.Transport) -> None:
        """Sends no more empty lines."""
        self._last.pop(held, None)

    async def send_due(self) -> None:
        """Sends the empty lines that are due, in chunks."""
        now = asyncio.get_running_loop().time()
        for number, held in enumerate(self._due(now - KEEPALIVE_INTERVAL), start=1):
            if held in self._last:
                self._last[held] = now
                self._last.move_to_end(held)
                _send_empty_line(held)
            if number % CHUNK == 0:
                await asyncio.sleep(0)

    def _due(self, since: float) -> list[asyncio.Transport]:
        due = []
        for held, at in self._last.items():
            if at > since:
                break
            due.append(held)
        return due


def _send_empty_line(held: asyncio.Transport) -> None:
    if held.get_write_buffer_size():
        # The kernel buffers thousands of empty lines first: the client does not read.
        held.abort()
        return
    held.write(EMPTY_LINE)
