"""Writes the latest status of each key from a work queue of its own, so that a slow write delays no decision."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Hashable
from typing import Generic, TypeVar

import structlog

from jobset_gate.kube.errors import ApiError, InvalidResponse, Unreachable, is_namespace_terminating
from jobset_gate.runtime.clock import monotonic as loop_time
from jobset_gate.runtime.workqueue import WorkQueue

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

_log = structlog.get_logger(__name__)


class StatusWorker(Generic[K, V]):
    """Keeps one value per key, the latest. `reconcile` is for a Controller on the same queue.

    `write(key, value)` writes what is due of it; it returns the seconds after which to call it again, None when
    everything is written. A failed write is retried after the API server's Retry-After, else after `retry` seconds; a
    value with another `topic` is tried at once. `on_dropped`: the key was dropped while it was being written.
    """

    def __init__(
        self,
        queue: WorkQueue[K],
        write: Callable[[K, V], Awaitable[float | None]],
        *,
        retry: float,
        topic: Callable[[V], Hashable] = lambda _: None,
        on_dropped: Callable[[K], None] = lambda _: None,
        on_error: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = loop_time,
    ) -> None:
        self._queue, self._write, self._retry, self._topic = queue, write, retry, topic
        self._on_dropped, self._on_error, self._monotonic = on_dropped, on_error, monotonic
        self._values: dict[K, V] = {}
        self._failed: dict[K, tuple[Hashable, float]] = {}
        """The topic of the last failed write, and when to retry it."""

    def submit(self, key: K, value: V, after: float) -> None:
        """Write this value in `after` seconds, instead of any earlier one."""
        self._values[key] = value
        self._queue.add_after(key, max(after, self._delay(key, value)))

    def latest(self, key: K) -> V | None:
        """The value that is not written yet."""
        return self._values.get(key)

    def discard(self, key: K) -> None:
        """There is nothing to write any more."""
        self._values.pop(key, None)

    def forget(self, key: K) -> None:
        """The object is gone, its failures with it."""
        self._values.pop(key, None)
        self._failed.pop(key, None)

    async def reconcile(self, key: K) -> float | None:
        """Writes the latest value. Returns the seconds after which to reconcile again."""
        value = self._values.get(key)
        if value is None:
            return None
        delay = self._delay(key, value)
        if delay > 0:
            return delay
        try:
            wait = await self._write(key, value)
        except (ApiError, InvalidResponse, Unreachable) as error:
            return self._fail(key, value, error)
        self._failed.pop(key, None)
        latest = self._values.get(key)
        if latest is None:
            self._on_dropped(key)
        elif latest is value and wait is None:
            del self._values[key]
        return wait

    def _fail(self, key: K, value: V, error: Exception) -> float | None:
        if is_namespace_terminating(error):
            self.forget(key)
            self._on_dropped(key)
            return None
        advised = error.retry_after if isinstance(error, ApiError) else None
        delay = advised or self._retry
        self._failed[key] = self._topic(value), self._monotonic() + delay
        self._on_error()
        _log.warning("status not written", key=str(key), error=str(error), retry_in=delay)
        return delay

    def _delay(self, key: K, value: V) -> float:
        topic, until = self._failed.get(key, (None, 0.0))
        return max(0.0, until - self._monotonic()) if key in self._failed and topic == self._topic(value) else 0.0
