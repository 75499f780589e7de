"""Tasks of the played controllers: in the background, bounded calls, queued writes, and the reconcile loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from jobset_gate.fake.objects import Key
from jobset_gate.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from jobset_gate.runtime.controller import Controller
from jobset_gate.runtime.workqueue import Requeue, WorkQueue

_log = logging.getLogger(__name__)

Call = Callable[[], Awaitable[object]]
RETRY_SECONDS = 0.5


class BackgroundTasks:
    """Tasks that run until `stop`. The first that fails is kept as `failure` and raised by `stop`."""

    def __init__(self) -> None:
        self._tasks: list[asyncio.Task[None]] = []
        self.failed = asyncio.Event()
        self.failure: BaseException | None = None

    def start(self, name: str, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=name)
        task.add_done_callback(self._on_done)
        self._tasks.append(task)

    async def until(self, what: Awaitable[object]) -> None:
        """Wait for `what`; the failure of a task is raised at once."""
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

    def _on_done(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() or task.exception() is None:
            return
        _log.error("%s failed", task.get_name(), exc_info=task.exception())
        if self.failure is None:
            self.failure = task.exception()
        self.failed.set()


async def run_bounded(limit: asyncio.Semaphore, calls: Iterable[Call]) -> None:
    """Make all calls; the first error is raised once all have ended, AlreadyExists only if there is no other."""

    async def one(call: Call) -> None:
        async with limit:
            await call()

    outcomes = await asyncio.gather(*(one(call) for call in calls), return_exceptions=True)
    # AlreadyExists may be a creation of this controller that its cache does not show yet.
    problems = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    problems.sort(key=lambda problem: isinstance(problem, AlreadyExists))
    if problems:
        raise problems[0]


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


def reconcile_queue() -> WorkQueue[Key]:
    """That of a played controller."""
    return WorkQueue(base=FIRST_RETRY, cap=LAST_RETRY)


def played_controller(
    name: str, queue: WorkQueue[Key], reconcile: Callable[[Key], Awaitable[None]], *, workers: int
) -> Controller[Key]:
    """Reconciles keys. Errors of the API are retried and not logged: conflicts are usual."""

    async def quietly(key: Key) -> None:
        try:
            await reconcile(key)
        except KubeError as error:
            raise Requeue(str(error)) from error

    return Controller(name, queue, quietly, workers=workers)
