"""A client that costs next to nothing: prepared requests over one kept-alive TLS connection, one at a time."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Unexpected(Exception):
    """An answer other than 200."""


def prepared(url: str, path: str, body: bytes) -> bytes:
    """A POST as it goes over the wire."""
    host = urlsplit(url).netloc
    head = (
        f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\nAccept: application/json\r\n"
        f"User-Agent: bench\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


class HttpConnection:
    """`async with Connection(url, tls) as connection`."""

    def __init__(self, url: str, tls: ssl.SSLContext) -> None:
        self._where, self._tls = urlsplit(url), tls

    async def __aenter__(self) -> Self:
        where = self._where
        self._reader, self._writer = await asyncio.open_connection(where.hostname, where.port, ssl=self._tls)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.close()
        await self._writer.wait_closed()

    def abort(self) -> None:
        """Ends it without waiting for the other side."""
        self._writer.transport.abort()

    async def post(self, request: bytes) -> tuple[float, bytes]:
        """Seconds until the whole answer was there, and its body. Raises Unexpected."""
        start = time.perf_counter()
        self._writer.write(request)
        head = await self._reader.readuntil(b"\r\n\r\n")
        length = int(head.lower().split(b"content-length:", 1)[1].split(b"\r\n", 1)[0])
        body = await self._reader.readexactly(length)
        seconds = time.perf_counter() - start
        if not head.startswith(b"HTTP/1.1 200 "):
            raise Unexpected(f"{head!r} {body[:500]!r}")
        return seconds, body


@asynccontextmanager
async def brief(url: str, tls: ssl.SSLContext) -> AsyncIterator[HttpConnection]:
    """A connection to a server that may never answer, or close."""
    connection = HttpConnection(url, tls)
    await connection.__aenter__()
    try:
        yield connection
    finally:
        connection.abort()
