"""The bodies of requests: none above a size, and only so many large ones in memory at a time."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Final

from aiohttp import web

LARGEST_BODY: Final = 4 * 1024 * 1024
"""Bytes. etcd takes objects of 1.5 MiB, and the review of an UPDATE holds two of them."""
LARGEST_TOGETHER: Final = 8 * LARGEST_BODY
"""Bytes of large bodies and answers in memory: with them the process stays below the chart's memory limit."""
SMALL: Final = 64 * 1024
"""Bytes. What is smaller is read at once: an ordinary gang's review never waits behind large ones."""
MOST_WAITING: Final = 16
"""Requests that wait for memory; each holds up to 1 MiB in the buffers of its connection. More are sent away."""
SLOW_AFTER_SECONDS: Final = 1.0
"""Seconds after which who sends or reads makes room for another, if that is needed."""


class BodyBudget:
    """The memory for them."""

    def __init__(self, most: int = LARGEST_TOGETHER) -> None:
        self._free = most
        self._held: dict[web.RequestHandler, float] = {}
        """Since when; the one who has held memory for longest is the first."""
        self._waiting = 0
        self._changed = asyncio.Event()

    @asynccontextmanager
    async def read(self, request: web.Request) -> AsyncIterator[bytearray]:
        """The body, which is there while the block runs. Raises HTTPRequestEntityTooLarge."""
        length = LARGEST_BODY if request.content_length is None else request.content_length
        if length > LARGEST_BODY:
            raise web.HTTPRequestEntityTooLarge(LARGEST_BODY, length)
        size = length if length > SMALL else 0
        if size > self._free:
            await self._wait(size)
        self._acquire(request, size)
        try:
            yield await _read(request)
        finally:
            self._release(request, size)

    async def write(self, request: web.Request, answer: bytes) -> web.StreamResponse:
        """Sends it piece by piece, so that memory is not given back before the client has read."""
        size = len(answer) if len(answer) > SMALL else 0
        if size > self._free:
            self._abort_slowest()
            raise _later()
        self._acquire(request, size)
        try:
            response = web.StreamResponse(headers={"Content-Type": "application/json"})
            response.content_length = len(answer)
            await response.prepare(request)
            for start in range(0, len(answer), SMALL):
                await response.write(answer[start : start + SMALL])
            await response.write_eof()
            return response
        finally:
            self._release(request, size)

    def _acquire(self, request: web.Request, size: int) -> None:
        self._free -= size
        if size:
            self._held[request.protocol] = asyncio.get_running_loop().time()

    def _release(self, request: web.Request, size: int) -> None:
        self._free += size
        self._held.pop(request.protocol, None)
        self._changed.set()

    async def _wait(self, size: int) -> None:
        if self._waiting >= MOST_WAITING:
            raise _later()
        self._waiting += 1
        try:
            while size > self._free:
                self._abort_slowest()
                self._changed.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(SLOW_AFTER_SECONDS / 4):
                        await self._changed.wait()
        finally:
            self._waiting -= 1

    def _abort_slowest(self) -> None:
        """Who has held memory for longest is cut off, if for long."""
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
