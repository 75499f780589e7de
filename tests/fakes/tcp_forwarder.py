"""TCP on loopback that is passed on to somewhere else, and that a test can cut: what Services and proxies share."""

import asyncio
from typing import Self

CHUNK = 64 * 1024
StreamPair = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class TcpForwarder:
    """`async with TcpForwarder() as it`: a connection to `it.port` is joined with the one that `connect` makes."""

    def __init__(self) -> None:
        self.port = 0
        self._open = True
        self._links: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def connect(self, near: StreamPair) -> StreamPair | None:
        """The far end of a new connection. None, or an OSError: it is closed."""
        raise NotImplementedError

    def passes(self, piece: bytes) -> bool:
        """Whether the far end's next piece goes through; else it is lost, and its connection with it."""
        return True

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1000)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for _turn in range(3):  # those accepted last are only being made
            await asyncio.sleep(0)
        self.cut()
        await asyncio.gather(*self._links, return_exceptions=True)

    def cut(self) -> None:
        """Breaks all connections; new ones break at once, until mend()."""
        self._open = False
        for link in self._links:
            link.cancel()

    def mend(self) -> None:
        self._open = True

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.create_task(self._link((reader, writer)), name="forwarder")
        self._links.add(link)
        link.add_done_callback(self._links.discard)
        # Here: one that is cut before its task begins never gets into a `finally` of its own.
        link.add_done_callback(lambda _: writer.transport.abort())

    async def _link(self, near: StreamPair) -> None:
        try:
            far = await self.connect(near) if self._open else None
        except (OSError, asyncio.IncompleteReadError):
            return
        if far is None:
            return
        there, back = ways = [asyncio.create_task(self._there(near, far)), asyncio.create_task(self._back(far, near))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if back.done():
                near[1].close()  # what is on its way still arrives
                await near[1].wait_closed()
        finally:
            there.cancel()
            back.cancel()
            far[1].transport.abort()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _there(self, near: StreamPair, far: StreamPair) -> None:
        while piece := await near[0].read(CHUNK):
            far[1].write(piece)
            await far[1].drain()

    async def _back(self, far: StreamPair, near: StreamPair) -> None:
        while (piece := await far[0].read(CHUNK)) and self.passes(piece):
            near[1].write(piece)
            await near[1].drain()
