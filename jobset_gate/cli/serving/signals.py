"""Runs a service until it is told to stop, and then lets it end in order."""

import asyncio
import contextlib
import signal
from collections.abc import Coroutine
from typing import Any, Final

import structlog

SIGNALS: Final = (signal.SIGTERM, signal.SIGINT)

log = structlog.get_logger("jobset_gate.cli")


async def until_told(service: Coroutine[Any, Any, None]) -> None:
    """Runs the service; SIGTERM or SIGINT cancels it, and this returns when it has ended.

    Raises what the service raises. A second signal ends the process at once, as if nobody listened.
    """
    loop, task = asyncio.get_running_loop(), asyncio.ensure_future(service)
    told = False

    def stop(number: signal.Signals) -> None:
        nonlocal told
        told = True
        log.info("stopping", signal=number.name)
        for each in SIGNALS:
            loop.remove_signal_handler(each)
        task.cancel()

    for each in SIGNALS:
        loop.add_signal_handler(each, stop, each)
    try:
        await asyncio.wait([task])
    finally:
        for each in SIGNALS:
            loop.remove_signal_handler(each)
    with contextlib.suppress(asyncio.CancelledError):
        await task
    if not told and task.cancelled():
        raise asyncio.CancelledError
