"""The Service of the gate stream: one address that stays, behind it whichever replica of the controller listens."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Self
from urllib.parse import urlsplit

CHUNK = 64 * 1024


class Service:
    """`async with Service(endpoints) as service`: forwards TCP from `service.url` to the first endpoint that answers.

    `endpoints` gives the replicas' URLs of this moment, "" for one that does not listen. Nothing listens anywhere: the
    connection is closed, as a proxy's would be.
    """

    def __init__(self, endpoints: Callable[[], Iterable[str]]) -> None:
        self.let_through: int | None = None
        """So many verdicts more pass; every later one is lost, and its connection with it. None: all pass."""
        self.passed = 0
        """Verdicts that went through."""
        self.asked: list[str] = []
        """The paths of the requests that reached a replica."""
        self._endpoints = endpoints
        self._cut = False
        self._links: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0, backlog=1000)
        host, port = self._server.sockets[0].getsockname()
        self.url = f"http://{host}:{port}"
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._server is not None:
            self._server.close()
        for _turn in range(3):  # those accepted last are only being made
            await asyncio.sleep(0)
        self.cut()
        await asyncio.gather(*self._links, return_exceptions=True)

    def cut(self) -> None:
        """The network between pods and controller is gone, and with it all connections."""
        self._cut = True
        for link in self._links:
            link.cancel()

    def mend(self) -> None:
        self._cut, self.let_through = False, None

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = asyncio.create_task(self._link(reader, writer), name="service")
        self._links.add(link)
        link.add_done_callback(self._links.discard)
        # Here too: one that is cut before its task begins never gets into its `finally`.
        link.add_done_callback(lambda _: writer.transport.abort())

    async def _link(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far: asyncio.StreamWriter | None = None
        try:
            found = None if self._cut else await self._connected()
            if found is not None:
                answers, far = found
                await self._both(reader, far, answers, writer)
        finally:
            for end in (writer, far):
                if end is not None:
                    end.transport.abort()

    async def _connected(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter] | None:
        for url in self._endpoints():
            place = urlsplit(url)
            if place.hostname:
                with suppress(OSError):
                    return await asyncio.open_connection(place.hostname, place.port)
        return None

    async def _both(
        self,
        asks: asyncio.StreamReader,
        far: asyncio.StreamWriter,
        answers: asyncio.StreamReader,
        near: asyncio.StreamWriter,
    ) -> None:
        """Until either end closes."""
        ways = [asyncio.create_task(self._there(asks, far)), asyncio.create_task(self._back(answers, near))]
        try:
            await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
            if ways[1].done():
                near.close()  # what is on its way still arrives
                await near.wait_closed()
        finally:
            for way in ways:
                way.cancel()
            await asyncio.gather(*ways, return_exceptions=True)

    async def _there(self, asks: asyncio.StreamReader, far: asyncio.StreamWriter) -> None:
        while piece := await asks.read(CHUNK):
            self.asked.append(piece.split()[1].decode())  # a request is one small piece
            far.write(piece)

    async def _back(self, answers: asyncio.StreamReader, near: asyncio.StreamWriter) -> None:
        while piece := await answers.read(CHUNK):
            if b"release " in piece or b"timeout " in piece:
                if self.let_through is not None and self.passed >= self.let_through:
                    return
                self.passed += 1
            near.write(piece)
