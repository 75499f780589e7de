"""Tasks of the played controllers: in the background, bounded calls, queued writes; and what all controllers share."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Conflict, KubeError, NotFound
from jobset_gate.kube.resources import Resource
from jobset_gate.runtime.controller import Controller
from jobset_gate.runtime.informer import Informer, WatchSource
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.runtime.workqueue import Requeue, WorkQueue
from jobset_gate_demo.fake.objects import Clock, FakeObject, Key

_log = logging.getLogger(__name__)

Call = Callable[[], Awaitable[object]]
RETRY_SECONDS = 0.5


class BackgroundTasks:
    """Tasks that run until `stop`, which raises the error of the first that has failed."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        self._tasks.append(asyncio.create_task(work, name=name))

    async def until(self, what: Awaitable[object]) -> None:
        """Wait for `what`; the error of a task that fails meanwhile is raised at once."""
        wanted = asyncio.ensure_future(what)
        try:
            while not wanted.done():
                running = (task for task in self._tasks if not task.done())
                await asyncio.wait((wanted, *running), return_when=asyncio.FIRST_COMPLETED)
                self._raise_failure()
            await wanted
        finally:
            wanted.cancel()
            await asyncio.gather(wanted, return_exceptions=True)

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._raise_failure()

    def _raise_failure(self) -> None:
        for task in self._tasks:
            if task.done() and not task.cancelled():
                task.result()


async def in_parallel(calls: Iterable[Awaitable[object]]) -> None:
    """As many at once as the client has connections. The first error is raised once all have ended."""
    for outcome in await asyncio.gather(*calls, return_exceptions=True):
        if isinstance(outcome, BaseException):
            raise outcome


class WriteQueue:
    """Writes a bounded number at once, one at a time per key; a later write replaces one that has not begun.

    NotFound and Conflict end a write: the object is gone, or another one has its name. Any other failure of the API is
    logged and the write is retried, unless a newer one was queued.
    """

    def __init__(self, parallel: int) -> None:
        self._next: dict[str, Call] = {}
        self._queue: WorkQueue[str] = WorkQueue()
        self._controller = Controller("writes", self._queue, self._attempt, workers=parallel)

    def put(self, key: str, write: Call) -> None:
        self._next[key] = write
        self._queue.add(key)

    async def run(self) -> None:
        await self._controller.run()

    async def _attempt(self, key: str) -> float | None:
        write = self._next.pop(key, None)
        try:
            if write is not None:
                await write()
        except (NotFound, Conflict) as error:
            _log.debug("%s: %s", key, error)
        except KubeError as error:
            _log.warning("%s: %s", key, error)
            if write is not None:
                self._next.setdefault(key, write)
            return RETRY_SECONDS
        return None


# --- Reconciling ------------------------------------------------------------------------------------------------------

FIRST_RETRY = 0.01  # seconds; doubled with every failure in a row
LAST_RETRY = 5.0


class PlayedController:
    """A controller and its informers: `run()` until cancelled. Errors of the API, often conflicts, are not logged."""

    def __init__(self, name: str, client: Client, clock: Clock, namespace: str | None, *, workers: int) -> None:
        self._client, self._clock, self._namespace = client, clock, namespace
        self._queue: WorkQueue[Key] = WorkQueue(base=FIRST_RETRY, cap=LAST_RETRY)
        self._controller = Controller(name, self._queue, self._reconcile_quietly, workers=workers)
        self._informers: list[Informer[FakeObject, FakeObject]] = []

    def _informer(
        self, resource: Resource, handler: Callable[[ObjectChange[FakeObject]], None], label_selector: str = ""
    ) -> Informer[FakeObject, FakeObject]:
        source = WatchSource(resource, FakeObject, lambda seen: seen, handler, self._namespace, label_selector)
        self._informers.append(Informer(self._client, source))
        return self._informers[-1]

    async def wait_synced(self) -> None:
        for informer in self._informers:
            await informer.wait_synced()

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            await self.wait_synced()
            group.create_task(self._controller.run())

    async def _reconcile(self, key: Key) -> None:
        raise NotImplementedError

    async def _reconcile_quietly(self, key: Key) -> None:
        try:
            await self._reconcile(key)
        except KubeError as error:
            raise Requeue(str(error)) from error
