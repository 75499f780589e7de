"""The loop of the played controllers, on runtime's work queue."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable

from jobset_gate.fake.objects import Key
from jobset_gate.kube.errors import KubeError
from jobset_gate.runtime.workqueue import WorkQueue

FIRST_RETRY = 0.01  # seconds; doubled with every failure in a row
LAST_RETRY = 5.0

_log = logging.getLogger(__name__)


class Reconciler:
    """Reconciles keys. `pause` starts no reconcile until `resume`; what changes meanwhile is queued.

    Errors of the API are retried; any other ends `run`, since it is a bug of the played controller.
    """

    def __init__(self, name: str, reconcile: Callable[[Key], Awaitable[None]], *, workers: int) -> None:
        self._name, self._reconcile, self._workers = name, reconcile, workers
        self._queue: WorkQueue[Key] = WorkQueue(base=FIRST_RETRY, cap=LAST_RETRY)
        self._open = asyncio.Event()
        self._open.set()

    def pause(self) -> None:
        self._open.clear()

    def resume(self) -> None:
        self._open.set()

    def add(self, key: Key) -> None:
        self._queue.add(key)

    def add_after(self, key: Key, seconds: float) -> None:
        self._queue.add_after(key, seconds)

    async def run(self) -> None:
        """Until cancelled."""
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(self._workers):
                    group.create_task(self._work())
        finally:
            self._queue.shutdown()

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._open.wait()
                await self._reconcile(key)
            except KubeError as error:
                _log.debug("%s %s/%s: %s", self._name, *key, error)
                self._queue.add_rate_limited(key)
            else:
                self._queue.forget(key)
            finally:
                self._queue.done(key)
