"""An HTTP proxy on loopback that knows CONNECT alone, and that a test can cut."""

from __future__ import annotations

import asyncio
from types import TracebackType
from typing import Self

CHUNK = 65536


class TunnelProxy:
    """`async with Tunnel() as tunnel`. `targets` are the host:port that were asked for."""

    def __init__(self) -> None:
        self.targets: set[str] = set()
        self._open = True
        self._server: asyncio.Server | None = None
        self._links: set[asyncio.StreamWriter] = set()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.cut()
        assert self._server is not None
        self._server.close()
        await self._server.wait_closed()

    @property
    def url(self) -> str:
        assert self._server is not None
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"

    def cut(self) -> None:
        """Breaks all connections; new ones break at once, until mend()."""
        self._open = False
        for link in self._links:
            link.transport.abort()

    def mend(self) -> None:
        self._open = True

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._links.add(writer)
        try:
            if self._open:
                await self._connect(reader, writer)
        except (OSError, asyncio.IncompleteReadError):
            pass  # cut, or an end that went away: both ends are closed below
        finally:
            writer.transport.abort()
            self._links.discard(writer)

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        verb, target, _ = (await reader.readuntil(b"\r\n\r\n")).split(b" ", 2)
        assert verb == b"CONNECT"
        self.targets.add(target.decode())
        host, port = target.decode().rsplit(":", 1)
        there, back = await asyncio.open_connection(host, int(port))
        self._links.add(back)
        try:
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
            async with asyncio.TaskGroup() as both:
                both.create_task(_pour(reader, back))
                both.create_task(_pour(there, writer))
        except* OSError:
            pass  # as above
        finally:
            back.transport.abort()
            self._links.discard(back)


async def _pour(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while chunk := await source.read(CHUNK):
        sink.write(chunk)
        await sink.drain()
    raise ConnectionResetError  # one end has closed: so does the tunnel
