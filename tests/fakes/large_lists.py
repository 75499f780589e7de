"""Answers of a server whose objects are large: written piece by piece, so that only the reader holds any of them."""

from __future__ import annotations

import tracemalloc
from collections.abc import Awaitable, Sequence

from aiohttp import web

MIB = 1024 * 1024


class LargeListServer:
    """Answers a list with as many of `items`, JSON already, as its limit asks for."""

    def __init__(self, items: Sequence[bytes]) -> None:
        self._items = items
        self.limits: list[int] = []

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        limit, start = int(request.query["limit"]), int(request.query.get("continue", 0))
        self.limits.append(limit)
        end = min(start + limit, len(self._items))
        go_on = f'"continue":"{end}",' if end < len(self._items) else ""
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            await response.write(f'{{"metadata":{{{go_on}"resourceVersion":"7"}},"items":['.encode())
            for number in range(start, end):
                await response.write((b"," if number > start else b"") + self._items[number])
            await response.write(b"]}")
        except ConnectionError:
            pass  # the reader has had enough
        return response


async def peak(work: Awaitable[object]) -> float:
    """MiB that Python had more than before at most while this was done."""
    tracemalloc.start()
    try:
        before, _ = tracemalloc.get_traced_memory()
        await work
        return (tracemalloc.get_traced_memory()[1] - before) / MIB
    finally:
        tracemalloc.stop()
