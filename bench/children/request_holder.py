"""The least that can hold and answer requests: an asyncio protocol that parses nothing, in a process of its own."""

from __future__ import annotations

import asyncio
import resource
import time

from typing_extensions import override

from bench.children import command_loop
from bench.children.command_loop import Json
from bench.children.loop_lag import LoopLag

HEAD = b"HTTP/1.0 200 OK\r\nContent-Type: text/plain\r\n\r\n\n"


class _HeldConnection(asyncio.Protocol):
    def __init__(self, transports: set[asyncio.Transport]) -> None:
        self._transports = transports

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self._transport.write(HEAD)
        self._transports.add(self._transport)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._transports.discard(self._transport)


class RequestHolder:
    """The commands."""

    def __init__(self) -> None:
        self._transports: set[asyncio.Transport] = set()

    async def listen(self) -> Json:
        """Opens a port."""
        loop = asyncio.get_running_loop()
        server = await loop.create_server(lambda: _HeldConnection(self._transports), "127.0.0.1", 0, backlog=4096)
        port = server.sockets[0].getsockname()[1]
        return {"url": f"http://127.0.0.1:{port}"}

    async def answer_all(self, text: str) -> Json:
        """Answers all in one go; when it began, and how long the loop was kept from everything else."""
        lag = LoopLag()
        beating = asyncio.create_task(lag.measure())
        await asyncio.sleep(0.05)
        at, answer = time.perf_counter(), text.encode()
        for transport in list(self._transports):
            transport.write(answer)
            transport.close()
        await asyncio.sleep(0.2)
        beating.cancel()
        return {"at": at, "late": lag.late, "worked": lag.worked}

    async def usage(self) -> Json:
        return command_loop.usage()


async def main() -> None:
    """Serves until the parent goes."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    its = RequestHolder()
    await command_loop.serve({"listen": its.listen, "tell": its.answer_all, "usage": its.usage})


if __name__ == "__main__":
    asyncio.run(main())
