"""client-go's rate-limited work queue: keys, not events; each key at one worker at a time."""

import asyncio
import random
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Generic, TypeVar

from jobset_gate.errors import JobsetGateError
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.flowcontrol import exponential

K = TypeVar("K", bound=Hashable)


class Requeue(JobsetGateError):
    """Raised by a reconciler: optimistic-lock conflict or stale cache. No state was lost; requeue with back-off."""


def _ignore(*_: float) -> None:
    """For a queue that nobody observes."""


@dataclass(frozen=True, slots=True)
class QueueMetrics:
    """What a queue calls; seconds are those of the event loop's clock."""

    added: Callable[[], None] = _ignore
    """A key was added (workqueue_adds_total)."""
    retried: Callable[[], None] = _ignore
    """A key was requeued after a failure (workqueue_retries_total)."""
    waited: Callable[[float], None] = _ignore
    """From add() to get() (workqueue_queue_duration_seconds)."""
    worked: Callable[[float], None] = _ignore
    """From get() to done() (workqueue_work_duration_seconds)."""


class WorkQueue(Generic[K]):
    """First in, first out, each key once.

    A key that is added while a worker has it is queued again after done(). A key that fails has its own back-off: base,
    2 base, 4 base ... up to `cap` seconds, shortened at random by up to half.

    Informers also run on standbys, whose queue would grow without bound: one that is not `elected` drops keys until
    start().
    """

    def __init__(
        self,
        *,
        base: float = 0.005,
        cap: float = 60.0,
        rng: random.Random | None = None,
        metrics: QueueMetrics | None = None,
        elected: bool = True,
    ) -> None:
        self._base = base
        self._cap = cap
        self._rng = rng or random.Random()  # noqa: S311 - jitter
        self._metrics = metrics or QueueMetrics()
        self._ready: asyncio.Queue[K] = asyncio.Queue()
        self._dirty: dict[K, float] = {}  # keys to be reconciled, and since when
        self._working: dict[K, float] = {}  # keys at a worker, and since when; one that is also dirty is not in _ready
        self._timers: dict[K, asyncio.TimerHandle] = {}
        self._failures: dict[K, int] = {}
        self._elected = elected

    @property
    def depth(self) -> int:
        """Keys that wait for a worker (workqueue_depth)."""
        return self._ready.qsize()

    @property
    def unfinished_seconds(self) -> float:
        """Seconds for which the keys at workers have been there, summed up (workqueue_unfinished_work_seconds)."""
        return sum(monotonic() - since for since in self._working.values())

    @property
    def longest_running_seconds(self) -> float:
        """The longest of those (workqueue_longest_running_processor_seconds)."""
        return monotonic() - min(self._working.values()) if self._working else 0.0

    def add(self, key: K) -> None:
        """As soon as possible."""
        if not self._elected or key in self._dirty:
            return
        self._dirty[key] = monotonic()
        self._metrics.added()
        if key not in self._working:
            self._ready.put_nowait(key)

    def add_after(self, key: K, seconds: float) -> None:
        """add() after so many seconds; of several such times the earliest holds."""
        if not self._elected:
            return
        if seconds <= 0:
            self.add(key)
            return
        due, waiting = monotonic() + seconds, self._timers.get(key)
        if waiting is not None:
            if waiting.when() <= due:
                return
            waiting.cancel()
        self._timers[key] = asyncio.get_running_loop().call_at(due, self._fire, key)

    def start(self, keys: Iterable[K]) -> None:
        """This replica is elected; `keys` are all known ones."""
        self._elected = True
        for key in keys:
            self.add(key)

    def add_rate_limited(self, key: K, at_least: float = 0.0) -> float:
        """add() after the back-off of a key that has failed once more; returns the seconds until then.

        `at_least`: the API server's Retry-After.
        """
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        self._metrics.retried()
        backoff = exponential(failures, self._base, self._cap) * self._rng.uniform(0.5, 1.0)
        seconds = max(backoff, min(at_least, self._cap))
        self.add_after(key, seconds)
        return seconds

    def forget(self, key: K) -> None:
        """After a success: the next failure is the first one. A time set by add_after() stays."""
        self._failures.pop(key, None)

    async def get(self) -> K:
        """The next key; call done(key) afterwards."""
        key = await self._ready.get()
        self._working[key] = monotonic()
        self._metrics.waited(self._working[key] - self._dirty.pop(key))
        return key

    def done(self, key: K) -> None:
        """The worker that got the key has finished with it, successfully or not."""
        self._metrics.worked(monotonic() - self._working.pop(key))
        if key in self._dirty:
            self._ready.put_nowait(key)

    def _fire(self, key: K) -> None:
        del self._timers[key]
        self.add(key)
