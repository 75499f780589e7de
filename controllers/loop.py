"""Workers: take a key from the queue, reconcile it, come back when told to. One key's trouble is its own."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram

from controllers.gates import LookAgain
from controllers.queue import WorkQueue
from jobset_gate.kube.errors import KubeError, NotLeader

K = TypeVar("K")
Reconcile = Callable[[K], Awaitable[float | None]]

_log = structlog.get_logger(__name__)


class LoopMetrics:
    """The names that dashboards made for controller-runtime know."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.total = Counter(
            "controller_runtime_reconcile_total", "Reconciles, by result.", ["controller", "result"], registry=registry
        )
        self.errors = Counter(
            "controller_runtime_reconcile_errors_total", "Reconciles that raised.", ["controller"], registry=registry
        )
        self.seconds = Histogram(
            "controller_runtime_reconcile_time_seconds", "Time per reconcile.", ["controller"], registry=registry
        )
        self.active = Gauge("controller_runtime_active_workers", "Workers busy.", ["controller"], registry=registry)


class Loop(Generic[K]):
    """Some workers on one queue. `run` ends with NotLeader when a write is refused for want of the lease."""

    def __init__(
        self, name: str, queue: WorkQueue[K], reconcile: Reconcile[K], metrics: LoopMetrics, *, workers: int
    ) -> None:
        self._name, self._queue, self._reconcile = name, queue, reconcile
        self._metrics, self._workers = metrics, workers

    async def run(self) -> None:
        """Works until cancelled, or until the queue is shut down."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        while True:
            key = await self._queue.get()
            try:
                await self._once(key)
            finally:
                self._queue.done(key)
            # A pass that asks nobody anything does not wait anywhere: watches, leases and probes must get their turn.
            await asyncio.sleep(0)

    async def _once(self, key: K) -> None:
        result = "success"
        active = self._metrics.active.labels(self._name)
        active.inc()
        try:
            with self._metrics.seconds.labels(self._name).time():
                again = await self._reconcile(key)
        except LookAgain as lost:
            result = "requeue"
            _log.debug("looking again", controller=self._name, key=str(key), why=str(lost))
            self._queue.add_rate_limited(key)
        except NotLeader:
            raise
        except Exception as error:  # noqa: BLE001 - whatever one gang's reconcile raises must not stop the others
            result = "error"
            self._metrics.errors.labels(self._name).inc()
            # What an API server said needs no stack; anything else is a bug of ours and does.
            stack = None if isinstance(error, KubeError) else error
            _log.error("reconcile failed", controller=self._name, key=str(key), error=str(error), exc_info=stack)
            self._queue.add_rate_limited(key)
        else:
            self._queue.forget(key)
            if again is not None:
                result = "requeue_after"
                self._queue.add_after(key, again)
        finally:
            active.dec()
            self._metrics.total.labels(self._name, result).inc()
