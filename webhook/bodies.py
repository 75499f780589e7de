"""Memory limits for request and response bodies: a size limit for each, and a budget for all large ones together."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Final

from aiohttp import web

from jobset_gate.runtime.connections import wait_for_room

LARGEST_BODY: Final = 4 * 1024 * 1024
"""Bytes. etcd takes objects of 1.5 MiB, and the review of an UPDATE holds two of them."""
LARGEST_TOGETHER: Final = 8 * LARGEST_BODY
"""Bytes of large bodies and responses in memory; the process stays below the memory limit of the chart."""
SMALL: Final = 64 * 1024
"""Bytes. Smaller bodies are read at once: an ordinary review never waits behind large ones."""
MOST_WAITING: Final = 16
"""Requests that wait for memory; each holds up to 1 MiB in its connection's buffers. Others get a 503."""
SLOW_AFTER_SECONDS: Final = 1.0
"""Seconds after which a slow client is disconnected if another request needs its memory."""


class BodyBudget:
    """The memory that is left, and the connections that hold some."""

    def __init__(self, most: int = LARGEST_TOGETHER) -> None:
        self._free = most
        self._held: dict[web.RequestHandler, float] = {}
        """Connection to start time; the oldest is the first."""
        self._waiting = 0
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytearray]:
        """The body, in memory while the block runs. Raises HTTPRequestEntityTooLarge."""
        length = LARGEST_BODY if request.content_length is None else request.content_length
        if length > LARGEST_BODY:
            raise web.HTTPRequestEntityTooLarge(LARGEST_BODY, length)
        size = length if length > SMALL else 0
        if size > self._free:
            await self._wait(size)
        with self._hold(request, size):
            yield await _read(request)

    async def write(self, request: web.Request, answer: bytes) -> web.StreamResponse:
        """Sends the answer in pieces: its memory is released when the client has read it."""
        size = len(answer) if len(answer) > SMALL else 0
        if size > self._free:
            self._abort_slowest()
            raise _later()
        with self._hold(request, size):
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            response.content_length = len(answer)
            await response.prepare(request)
            for start in range(0, len(answer), SMALL):
                await response.write(answer[start : start + SMALL])
            await response.write_eof()
            return response

    @contextmanager
    def _hold(self, request: web.Request, size: int) -> Iterator[None]:
        self._free -= size
        if size:
            self._held[request.protocol] = asyncio.get_running_loop().time()
        try:
            yield
        finally:
            self._free += size
            self._held.pop(request.protocol, None)
            self._changed.set()

    async def _wait(self, size: int) -> None:
        if self._waiting >= MOST_WAITING:
            raise _later()

        def has_room() -> bool:
            if size > self._free:
                self._abort_slowest()
            return size <= self._free

        self._waiting += 1
        try:
            await wait_for_room(has_room, self._changed, SLOW_AFTER_SECONDS)
        finally:
            self._waiting -= 1

    def _abort_slowest(self) -> None:
        """Disconnects the client that has held memory for longest, if that is long enough."""
        oldest = next(iter(self._held), None)
        if oldest is None or asyncio.get_running_loop().time() - self._held[oldest] < SLOW_AFTER_SECONDS:
            return
        if oldest.transport is not None:
            oldest.transport.abort()


def _later() -> web.HTTPServiceUnavailable:
    return web.HTTPServiceUnavailable(headers={"Retry-After": "1"}, text="too many large requests at once\n")


async def _read(request: web.Request) -> bytearray:
    body = bytearray()
    async for piece in request.content.iter_any():
        body += piece
        if len(body) > LARGEST_BODY:
            raise web.HTTPRequestEntityTooLarge(LARGEST_BODY, len(body))
    return body
