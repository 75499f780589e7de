"""Keeps held connections of the gate stream alive."""

import asyncio
from collections import OrderedDict
from typing import Final

from controllers.barrier.stream.delivery import CHUNK

KEEPALIVE_INTERVAL: Final = 15.0
"""Seconds between two empty lines; clients close a connection that is silent for longer."""

EMPTY_LINE: Final = b"\n"


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
