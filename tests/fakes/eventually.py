"""Waiting for what another process, or an API server, does when it likes and announces nowhere."""

import asyncio
from collections.abc import Awaitable, Callable

PATIENCE = 240.0
"""Seconds that anything may take on a busy machine before a test gives up: none of it is a promise."""


async def eventually(holds: Callable[[], Awaitable[object]], reported: Callable[[], str] = lambda: "") -> None:
    """Asks again and again, where there is nothing to watch."""
    try:
        async with asyncio.timeout(PATIENCE):
            while not await holds():  # noqa: ASYNC110 - as said
                await asyncio.sleep(0.05)
    except TimeoutError as late:
        raise AssertionError(f"not so after {PATIENCE:.0f} s. {reported()}") from late
