"""A gate service of the test: it holds the barriers' requests and sends the test's answers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Self

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n"
HEARTBEAT = 15.0


class GateService:
    """`async with GateService() as service`: `service.url` is what JOBSET_GATE_STREAM begins with."""

    def __init__(self, *, chunked: bool = False, heartbeat: float | None = HEARTBEAT) -> None:
        self.requests: list[str] = []
        """The paths of all requests, in order."""
        self.refuse: bytes | None = None
        """What is answered instead of holding the request."""
        self.at_once: str | None = None
        """The answer to new requests."""
        self._chunked = chunked
        self._heartbeat = heartbeat
        self._open: set[asyncio.StreamWriter] = set()
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        self.hang_up()
        await self._server.wait_closed()
        await self.until(lambda: not self._open)

    @property
    def held(self) -> int:
        return len(self._open)

    async def until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            self._changed.clear()
            await self._changed.wait()

    async def until_held(self, count: int) -> None:
        await self.until(lambda: len(self._open) == count)

    def answer(self, *pieces: str) -> None:
        """All that is held gets this, in these pieces, and is closed."""
        for writer in self._open:
            for piece in pieces:
                self._say(writer, piece)
            self._end(writer)

    def hang_up(self) -> None:
        for writer in self._open:
            writer.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError, asyncio.IncompleteReadError):
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            self.requests.append(head.split()[1])
            self._changed.set()
            await self._hold(reader, writer)
        writer.close()
        self._open.discard(writer)
        self._changed.set()

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self.refuse is not None:
            writer.write(self.refuse)
            return
        writer.write(HEAD + (b"Transfer-Encoding: chunked\r\n\r\n" if self._chunked else b"\r\n"))
        if self.at_once is not None:
            self._say(writer, self.at_once)
            self._end(writer)
            return
        self._open.add(writer)
        self._changed.set()
        gone = asyncio.ensure_future(reader.read())
        while not gone.done():
            await asyncio.wait((gone,), timeout=self._heartbeat)
            if not gone.done() and not writer.is_closing():
                self._say(writer, "\n")
        await gone

    def _say(self, writer: asyncio.StreamWriter, text: str) -> None:
        raw = text.encode()
        writer.write(b"%x\r\n%s\r\n" % (len(raw), raw) if self._chunked else raw)

    def _end(self, writer: asyncio.StreamWriter) -> None:
        if self._chunked:
            writer.write(b"0\r\n\r\n")
        writer.close()
