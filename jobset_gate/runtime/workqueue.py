"""The queue between what happens and who deals with it: keys, not events; each key with one worker at a time."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Hashable
from typing import Final, Generic, Protocol, TypeVar

K = TypeVar("K", bound=Hashable)


class ShutDown(Exception):
    """The queue is closed and empty."""


class QueueMetrics(Protocol):
    """What the `workqueue_*` metrics need to be told; seconds are those of the event loop's clock."""

    def added(self) -> None:
        """A key has entered the queue (workqueue_adds_total)."""

    def retried(self) -> None:
        """A key was given back after a failure (workqueue_retries_total)."""

    def waited(self, seconds: float) -> None:
        """From entering the queue to a worker (workqueue_queue_duration_seconds)."""

    def worked(self, seconds: float) -> None:
        """From get() to done() (workqueue_work_duration_seconds)."""


class WorkQueue(Generic[K]):
    """First come, first served, without doubles.

    A key added while it waits is one; added while it is worked on, it comes again after done(). A key that fails backs
    off alone: base, 2 base, 4 base ... up to `cap` seconds, shortened at random by up to half.
    """

    def __init__(
        self,
        *,
        base: float = 0.005,
        cap: float = 60.0,
        rng: random.Random | None = None,
        metrics: QueueMetrics | None = None,
    ) -> None:
        self._base = base
        self._cap = cap
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._metrics = metrics
        self._ready: asyncio.Queue[K | _Closed] = asyncio.Queue()
        self._dirty: dict[K, float] = {}  # keys to be worked on, and since when
        self._working: dict[K, float] = {}  # keys at a worker, and since when; one that is also dirty is not in _ready
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._closed = False

    @property
    def depth(self) -> int:
        """Keys that are ready and have no worker yet (workqueue_depth)."""
        return self._ready.qsize() - self._closed

    @property
    def delayed(self) -> int:
        """Keys that a timer will add."""
        return len(self._timers)

    @property
    def unfinished_seconds(self) -> float:
        """The time that all keys now at a worker have been there, summed up (workqueue_unfinished_work_seconds)."""
        now = self._now() if self._working else 0.0
        return sum(now - since for since in self._working.values())

    @property
    def longest_running_seconds(self) -> float:
        """The longest that a key now at a worker has been there (workqueue_longest_running_processor_seconds)."""
        return self._now() - min(self._working.values()) if self._working else 0.0

    def add(self, key: K) -> None:
        """To be worked on as soon as possible. Nothing after shutdown()."""
        if self._closed or key in self._dirty:
            return
        self._dirty[key] = self._now()
        if self._metrics is not None:
            self._metrics.added()
        if key not in self._working:
            self._ready.put_nowait(key)

    def add_after(self, key: K, seconds: float) -> None:
        """add() when so many seconds have passed; of several such times the earliest holds."""
        if self._closed:
            return
        if seconds <= 0:
            self.add(key)
            return
        due = self._now() + seconds
        waiting = self._timers.get(key)
        if waiting is not None:
            if waiting.when() <= due:
                return
            waiting.cancel()
        self._timers[key] = asyncio.get_running_loop().call_at(due, self._fire, key)

    def add_rate_limited(self, key: K, at_least: float = 0.0) -> float:
        """add() after the backoff of a key that has failed (once more); gives the seconds until then.

        `at_least`: seconds for which the server asked to be left alone.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        if self._metrics is not None:
            self._metrics.retried()
        backoff = min(self._cap, self._base * 2.0 ** min(failures, 60)) * self._rng.uniform(0.5, 1.0)
        seconds = max(backoff, min(at_least, self._cap))
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """It went well: the next failure is a first one. A time set by add_after() stays."""
        self._failures.pop(key, None)

    def num_requeues(self, key: K) -> int:
        """How often in a row it has failed."""
        return self._failures.get(key, 0)

    async def get(self) -> K:
        """The next key; call done(key) when it has been worked on. Raises ShutDown at the end."""
        key = await self._ready.get()
        if isinstance(key, _Closed):
            self._ready.put_nowait(key)  # for the next worker
            raise ShutDown
        now = self._now()
        since = self._dirty.pop(key)
        self._working[key] = now
        if self._metrics is not None:
            self._metrics.waited(now - since)
        return key

    def done(self, key: K) -> None:
        """The worker that got the key is through with it, well or not."""
        started = self._working.pop(key)
        if self._metrics is not None:
            self._metrics.worked(self._now() - started)
        if key in self._dirty and not self._closed:
            self._ready.put_nowait(key)

    def shutdown(self) -> None:
        """Takes nothing new and forgets all timers; what is ready is still handed out."""
        if self._closed:
            return
        self._closed = True
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
        self._ready.put_nowait(_CLOSED)

    def _fire(self, key: K) -> None:
        del self._timers[key]
        self.add(key)

    def _now(self) -> float:
        return asyncio.get_running_loop().time()


class _Closed:
    """Stands at the end of a closed queue."""


_CLOSED: Final = _Closed()
