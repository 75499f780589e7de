"""Server-sent events: few connections, one look at the board for all of them, and nobody waits for a slow reader."""

import asyncio
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Final, Protocol

import msgspec
import structlog
from aiohttp import web

from controllers.statuspage.authz import Visibility
from controllers.statuspage.feed import PageUpdate, StreamEnded
from controllers.statuspage.reviews import ReviewUnavailable, TooManyAttempts
from controllers.statuspage.view import StatusView

EVERY: Final = 0.5
"""Seconds between two looks at the board: what changes meanwhile is told at once."""
HEARTBEAT: Final = 5.0
"""Seconds without news after which the server shows that it is there."""
RECHECK: Final = 15.0
"""Seconds after which it is asked again whether the viewer may."""
WRITE_TIMEOUT: Final = 10.0
"""Seconds that a reader may take for what was sent to him."""
MAX_STREAMS, MAX_STREAMS_PER_VIEWER = 200, 20
"""Streams at once, and of one viewer."""
RETRY: Final = b"retry: 3000\n\n"

AccessCheck = Callable[[], Awaitable[Visibility | None]]
"""What the viewer may see by now; None: he may no longer come in."""

_log = structlog.get_logger(__name__)


class PageFeed(Protocol):
    """Who knows what is new."""

    def next_update(self, sight: Visibility, now: float) -> PageUpdate:
        """{} for nothing. Raises Gone at the end."""


class TooManyStreams(Exception):
    """There is no room for another stream."""


class EventStreams:
    """All that are open. `clock`: seconds since the epoch."""

    def __init__(
        self, board: StatusView, clock: Callable[[], float], monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._board, self._clock, self._monotonic = board, clock, monotonic
        self.every, self.write_timeout = EVERY, WRITE_TIMEOUT
        self._open: Counter[str] = Counter()
        self._stopping = False
        self._watched, self._turn = asyncio.Event(), asyncio.Event()

    @property
    def open(self) -> int:
        """How many there are."""
        return self._open.total()

    async def run(self) -> None:
        """For ever: keeps the board up to date while anybody watches."""
        while True:
            await self._watched.wait()
            version = self._board.version
            await self._board.refresh()
            if version != self._board.version:
                self._wake_all()
            await asyncio.sleep(self.every)

    def start(self) -> None:
        """There may be some, again."""
        self._stopping = False

    def stop(self) -> None:
        """Ends all of them."""
        self._stopping = True
        self._wake_all()

    async def serve(
        self, request: web.Request, response: web.StreamResponse, viewer: str, feed: PageFeed, check: AccessCheck
    ) -> None:
        """Until either end goes, or `check` says no. Raises Full."""
        if self._stopping or self.open >= MAX_STREAMS or self._open[viewer] >= MAX_STREAMS_PER_VIEWER:
            raise TooManyStreams
        self._open[viewer] += 1
        self._watched.set()
        try:
            await response.prepare(request)
            await self._send_updates(response, feed, check)
        except (ConnectionError, TimeoutError):
            if request.transport is not None:
                request.transport.abort()
        finally:
            self._open[viewer] -= 1
            self._open += Counter()  # forgets those who have none
            if not self._open:
                self._watched.clear()

    async def _send_updates(self, response: web.StreamResponse, feed: PageFeed, check: AccessCheck) -> None:
        await self._write(response, RETRY)
        checked = told = self._monotonic()
        sight = await check()
        while not self._stopping:
            turn = self._turn
            if self._monotonic() - checked >= RECHECK:
                checked, sight = self._monotonic(), await check()
            try:
                news = feed.next_update(sight, self._clock()) if sight is not None else None
            except StreamEnded:
                news = None
            if news is None:
                await self._write(response, b"event: end\ndata: over\n\n")
                return
            if news or self._monotonic() - told >= HEARTBEAT:
                await self._write(response, self._event(news))
                told = self._monotonic()
            await _until(turn, HEARTBEAT)

    def _event(self, news: PageUpdate) -> bytes:
        now = self._clock()
        if not news:
            return b"event: beat\ndata: %.3f\n\n" % now
        return b"event: view\ndata: " + msgspec.json.encode({"now": now, **news}) + b"\n\n"

    async def _write(self, response: web.StreamResponse, data: bytes) -> None:
        async with asyncio.timeout(self.write_timeout):
            await response.write(data)

    def _wake_all(self) -> None:
        self._turn.set()
        self._turn = asyncio.Event()


async def check_access(check: Callable[[], Awaitable[Visibility | None]]) -> Visibility | None:
    """Where nobody can tell whether he may, he may not."""
    try:
        return await check()
    except (ReviewUnavailable, TooManyAttempts):
        return None


async def _until(turn: asyncio.Event, seconds: float) -> None:
    try:
        async with asyncio.timeout(seconds):
            await turn.wait()
    except TimeoutError:
        return
