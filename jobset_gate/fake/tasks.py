"""Background tasks that must not die unnoticed."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

log = logging.getLogger(__name__)


class BackgroundTasks:
    """Tasks that run until `stop`. The first that fails is kept as `failure` and raised by `stop`."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self.failed = asyncio.Event()
        self.failure: BaseException | None = None

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._ended)
        self._tasks.append(task)

    async def until(self, what: Coroutine[Any, Any, object]) -> None:
        """Wait for `what`, but not longer than the crew lives: its failure is raised."""
        wanted = asyncio.ensure_future(what)
        failed = asyncio.ensure_future(self.failed.wait())
        try:
            await asyncio.wait((wanted, failed), return_when=asyncio.FIRST_COMPLETED)
            if self.failure is not None:
                raise self.failure
            await wanted
        finally:
            for task in (wanted, failed):
                task.cancel()
            await asyncio.gather(wanted, failed, return_exceptions=True)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._tasks.clear()
        if self.failure is not None:
            raise self.failure

    def _ended(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None:
            return
        log.error("%s failed", task.get_name(), exc_info=task.exception())
        if self.failure is None:
            self.failure = task.exception()
        self.failed.set()
