"""The Service of the gate stream: one address that stays, behind it whichever replica of the controller listens."""

import asyncio
from collections.abc import Callable, Iterable
from contextlib import suppress
from urllib.parse import urlsplit

from typing_extensions import override

from tests.fakes.tcp_forwarder import StreamPair, TcpForwarder


class Service(TcpForwarder):
    """`async with Service(endpoints) as service`: forwards TCP from `service.url` to the first endpoint that answers.

    `endpoints` gives the replicas' URLs of this moment, "" for one that does not listen. Nothing listens anywhere: the
    connection is closed, as a proxy's would be.
    """

    def __init__(self, endpoints: Callable[[], Iterable[str]]) -> None:
        super().__init__()
        self.let_through: int | None = None
        """So many verdicts more pass; every later one is lost, and its connection with it. None: all pass."""
        self.passed = 0
        """Verdicts that went through."""
        self._endpoints = endpoints

    @override
    def mend(self) -> None:
        super().mend()
        self.let_through = None

    @override
    async def connect(self, near: StreamPair) -> StreamPair | None:
        for url in self._endpoints():
            place = urlsplit(url)
            if place.hostname:
                with suppress(OSError):
                    return await asyncio.open_connection(place.hostname, place.port)
        return None

    @override
    def passes(self, piece: bytes) -> bool:
        if b"release " in piece or b"timeout " in piece:
            if self.let_through is not None and self.passed >= self.let_through:
                return False
            self.passed += 1
        return True
