"""Tasks of the played controllers: in the background, bounded calls, queued writes, and the reconcile loop."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any

from jobset_gate.fake.objects import Key
from jobset_gate.kube.errors import AlreadyExists, Conflict, KubeError, NotFound
from jobset_gate.runtime.workqueue import WorkQueue

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
        self._parallel = parallel
        self._next: dict[str, Call] = {}
        self._queue: WorkQueue[str] = WorkQueue()

    def put(self, key: str, write: Call) -> None:
        self._next[key] = write
        self._queue.add(key)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(self._parallel):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._attempt(key, self._next.pop(key))
            finally:
                self._queue.done(key)

    async def _attempt(self, key: str, write: Call) -> None:
        try:
            await write()
        except (NotFound, Conflict) as error:
            _log.debug("%s: %s", key, error)
        except KubeError as error:
            _log.warning("%s: %s", key, error)
            asyncio.get_running_loop().call_later(RETRY_SECONDS, self._retry, key, write)

    def _retry(self, key: str, write: Call) -> None:
        if key not in self._next:
            self.put(key, write)


# --- Reconciling ------------------------------------------------------------------------------------------------------

FIRST_RETRY = 0.01  # seconds; doubled with every failure in a row
LAST_RETRY = 5.0


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
