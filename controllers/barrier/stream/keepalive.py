"""Signs of life for all answers that are held open: an empty line each, every so often, by one timer for all."""

import asyncio
from collections import OrderedDict

from controllers.barrier.stream.registry import CHUNK

KEEPALIVE_INTERVAL = 15.0
"""Seconds between two empty lines: clients give up a connection that is silent for longer."""

EMPTY_LINE = b"\n"


class Keepalive:
    """Whose heart beats, in the order of their last beats."""

    def __init__(self, every: float = KEEPALIVE_INTERVAL) -> None:
        self._every = every
        self._last: OrderedDict[asyncio.Transport, float] = OrderedDict()

    def add_transport(self, held: asyncio.Transport) -> None:
        """It has just shown a sign of life, and gets more of them from now on."""
        self._last[held] = asyncio.get_running_loop().time()

    def remove_transport(self, held: asyncio.Transport) -> None:
        """It gets no more."""
        self._last.pop(held, None)

    async def send_due(self) -> None:
        """A beat for everyone whose last one is long enough ago, a slice at a time."""
        now = asyncio.get_running_loop().time()
        for number, held in enumerate(self._due(now - self._every), start=1):
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
        # The kernel takes thousands of empty lines before any stays with us: nobody is reading them.
        held.abort()
        return
    held.write(EMPTY_LINE)
