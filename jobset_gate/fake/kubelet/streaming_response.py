"""One plain HTTP request that is held open, as wget does it: the lines of the answer while they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

SILENCE = 40.0
"""Seconds without a byte after which the connection is given up (wget -T)."""
_LONGEST_LINE = 64 * 1024
_OK = 200


class StreamRefused(Exception):
    """Another status than 200, or no HTTP at all."""


class StreamingResponse:
    """The body of the answer, whatever way the server marks its end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, chunked: bool) -> None:
        self._reader, self._writer = reader, writer
        self._chunked = chunked
        self._buffer = b""
        self._ended = False

    def cut(self) -> None:
        """The connection breaks: the body ends here."""
        self._writer.transport.abort()

    async def line(self) -> str:
        """The next line with its end, "" when there are no more."""
        while b"\n" not in self._buffer and not self._ended:
            await self._more()
        line, end, self._buffer = self._buffer.partition(b"\n")
        return (line + end).decode(errors="replace")

    async def rest(self, most: int) -> str:
        """What is left until the server closes, but not more than about so many bytes."""
        while not self._ended and len(self._buffer) < most:
            await self._more()
        return self._buffer[:most].decode(errors="ignore")

    async def _more(self) -> None:
        if not self._chunked:
            piece = await _read(self._reader.read(_LONGEST_LINE))
        else:
            size = int((await _read(self._reader.readline())).partition(b";")[0], 16)
            piece = (await _read(self._reader.readexactly(size + 2)))[:size]
        self._buffer += piece
        self._ended = not piece


@asynccontextmanager
async def open_stream(url: str) -> AsyncIterator[StreamingResponse]:
    """GET. Raises Refused, OSError, EOFError, ValueError or TimeoutError; closed at once at the end, in any case."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port or 80, limit=_LONGEST_LINE)
    try:
        head = f"GET {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        yield StreamingResponse(reader, writer, chunked=await _head(reader))
    finally:
        # Not close(), which would wait for what is still to be sent: the process that held it is gone.
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def _head(reader: asyncio.StreamReader) -> bool:
    """Reads the status and the headers. True: the body comes in chunks."""
    lines = (await _read(reader.readuntil(b"\r\n\r\n"))).decode("latin-1").lower().splitlines()
    words = lines[0].split()
    if len(words) < 2 or words[1] != str(_OK):
        raise StreamRefused(lines[0])
    return any(line.replace(" ", "") == "transfer-encoding:chunked" for line in lines[1:])


async def _read(reading: Awaitable[bytes]) -> bytes:
    async with asyncio.timeout(SILENCE):
        return await reading
