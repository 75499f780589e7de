"""Workers that take keys from a queue and reconcile them; a key that fails delays no other."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Generic, TypeVar

import structlog
from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram
from structlog.contextvars import bound_contextvars

from jobset_gate.kube.errors import ApiError, KubeError, NotLeader
from jobset_gate.runtime.workqueue import Requeue, WorkQueue

K = TypeVar("K")
M = TypeVar("M", Counter, Gauge, Histogram)
Reconcile = Callable[[K], Awaitable[float | None]]

RESULTS = ("success", "requeue", "requeue_after", "error")

STUCK_SECONDS = 300.0
"""A worker that holds one key for longer is stuck: every request has a timeout far below."""

_log = structlog.get_logger(__name__)


class ControllerMetrics:
    """The metrics of controller-runtime, under its names."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def of_controller(kind: Callable[..., M], name: str, text: str, *labels: str) -> M:
            return kind(f"controller_runtime_{name}", text, ["controller", *labels], registry=registry)

        self.total = of_controller(Counter, "reconcile_total", "Passes, by how they ended.", "result")
        self.errors = of_controller(Counter, "reconcile_errors_total", "Passes that failed.")
        self.seconds = of_controller(Histogram, "reconcile_time_seconds", "Time per pass.")
        bug = "Passes that failed by a bug: please report them."
        self.panics = of_controller(Counter, "reconcile_panics_total", bug)
        self.active = of_controller(Gauge, "active_workers", "Workers busy.")
        self.most = of_controller(Gauge, "max_concurrent_reconciles", "Workers there are.")

    def init_series(self, controller: str, workers: int) -> None:
        """Creates all series of this controller, so that a first increment is visible."""
        for result in RESULTS:
            self.total.labels(controller, result)
        self.errors.labels(controller)
        self.panics.labels(controller)
        self.active.labels(controller)
        self.most.labels(controller).set(workers)


class Controller(Generic[K]):
    """Some workers on one queue. `run` ends with NotLeader when a write is refused for want of the lease.

    `reconcile(key)` returns the seconds after which to reconcile again, None for not before the next event. Without
    `metrics` nothing is counted. `log_fields` names the key in log lines.
    """

    def __init__(
        self,
        name: str,
        queue: WorkQueue[K],
        reconcile: Reconcile[K],
        metrics: ControllerMetrics | None = None,
        *,
        workers: int,
        log_fields: Callable[[K], Mapping[str, str]] = lambda key: {"key": str(key)},
    ) -> None:
        self._name, self._queue, self._reconcile = name, queue, reconcile
        self._workers, self._log_fields = workers, log_fields
        self._ended = 0
        metrics = metrics or ControllerMetrics(CollectorRegistry())
        metrics.init_series(name, workers)
        # Looking up a series takes longer than counting.
        self._errors, self._panics = metrics.errors.labels(name), metrics.panics.labels(name)
        self._active, self._seconds = metrics.active.labels(name), metrics.seconds.labels(name)
        self._results = {result: metrics.total.labels(name, result) for result in RESULTS}

    def health_error(self) -> str:
        """Why this controller, which should be running, does not work; "" if it does."""
        if self._ended:
            return f"{self._ended} of {self._workers} workers of {self._name} have ended"
        longest = self._queue.longest_running_seconds
        if longest > STUCK_SECONDS:
            return f"a worker of {self._name} has been at one key for {longest:.0f} s"
        return ""

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._workers):
                tasks.create_task(self._work())

    async def _work(self) -> None:
        try:
            while True:
                key = await self._queue.get()
                try:
                    with bound_contextvars(controller=self._name, **self._log_fields(key)):
                        await self._reconcile_key(key)
                finally:
                    self._queue.done(key)
                # A pass without a request never waits: watches, the lease and probes must get their turn.
                await asyncio.sleep(0)
        finally:
            self._ended += 1

    async def _reconcile_key(self, key: K) -> None:
        result = "success"
        self._active.inc()
        try:
            with self._seconds.time():
                requeue_after = await self._reconcile(key)
        except Requeue as conflict:
            result = "requeue"
            _log.debug("requeued", why=str(conflict))
            self._queue.add_rate_limited(key)
        except NotLeader:
            raise
        except ApiError as error:
            if error.retry_after is None:
                result = self._fail(key, error)
            else:
                # The next pass observes and decides again before it writes (controller-runtime: RequeueAfter).
                result = "requeue_after"
                _log.warning("throttled by the API server", error=str(error), seconds=error.retry_after)
                self._queue.add_rate_limited(key, error.retry_after)
        except Exception as error:  # noqa: BLE001 - whatever one key's reconcile raises must not stop the others
            result = self._fail(key, error)
        else:
            self._queue.forget(key)
            if requeue_after is not None:
                result = "requeue_after"
                self._queue.add_after(key, requeue_after)
        finally:
            self._active.dec()
            self._results[result].inc()

    def _fail(self, key: K, error: Exception) -> str:
        self._errors.inc()
        # An API error needs no stack; anything else is a bug of ours and does.
        stack = None if isinstance(error, KubeError) else error
        if stack is not None:
            self._panics.inc()
        _log.error("reconcile failed", error=str(error), exc_info=stack)
        self._queue.add_rate_limited(key)
        return "error"
