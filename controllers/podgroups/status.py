"""Says what there is to say of groups, in its own time: statuses and Events have a queue and workers of their own.

Nothing here may hold up a decision or take the API server's time from placing: writes are paced, and while a group is
being placed nothing is written about it. Of each group only the last word is kept.
"""

import math
from collections.abc import Callable
from typing import Final

import structlog

from controllers.podgroups.event_writer import PodGroupEventWriter
from controllers.podgroups.status_fields import StatusFields
from controllers.podgroups.status_writer import PodGroupStatusWriter
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import ApiError, InvalidResponse, Unreachable, is_namespace_terminating
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.rate_limiter import RateLimiter
from jobset_gate.runtime.workqueue import WorkQueue

STATUS_WORKERS: Final = 8
"""Groups of which something is being said at once."""
PLACING_QUIET_SECONDS: Final = 10.0
"""Seconds from a decision for which nothing is said while the scheduler places the pods."""
STATUS_RETRY_SECONDS: Final = 15.0
"""Seconds until what could not be said is said again."""

WRITES_PER_SECOND: Final = 20.0
WRITE_BURST: Final = 40
"""Of status and Event writes: a thousand groups that are placed at once must not take kube-scheduler's API capacity."""

_log = structlog.get_logger(__name__)


class PodGroupStatusWorker:
    """What is still to be said. `failed` is told of each write that did not succeed."""

    def __init__(
        self,
        client: Client,
        queue: WorkQueue[PodGroupKey],
        *,
        clock: Callable[[], float],
        failed: Callable[[], None] = lambda: None,
        again: float = STATUS_RETRY_SECONDS,
        patience: Callable[[], float] = monotonic,
    ) -> None:
        """`clock` dates what is written, `patience` measures pauses and is a clock that nobody sets."""
        self._queue, self._failed, self._again = queue, failed, again
        self._clock, self._patience = clock, patience
        pace = RateLimiter(WRITES_PER_SECOND, WRITE_BURST, patience)
        self._statuses = PodGroupStatusWriter(client, clock, StatusFields(client, patience=patience), patience=patience)
        self._stories = PodGroupEventWriter(client, clock, pace, patience=patience)
        self._pace = pace
        self._news: dict[PodGroupKey, GroupStatus] = {}
        self._put_off: dict[PodGroupKey, float] = {}

    def set_desired(self, report: GroupStatus) -> None:
        """This is what there is to say of the group from now on."""
        key = report.key
        wait = self._rest(report) or self._due_in(report)
        if wait is None:
            self._news.pop(key, None)
            return
        self._news[key] = report
        self._queue.add_after(key, max(wait, self._put_off.get(key, -math.inf) - self._patience()))

    def forget_group(self, key: PodGroupKey) -> None:
        """Nothing is left of the group."""
        self._news.pop(key, None)
        self._put_off.pop(key, None)
        self._statuses.forget_group(key)
        self._stories.forget_group(key)

    async def reconcile(self, key: PodGroupKey) -> float | None:
        """Says the last word on a group. Returns the seconds after which to come back, if there is more to say."""
        report = self._news.get(key)
        if report is None:
            return None
        pause = max(self._put_off.get(key, -math.inf) - self._patience(), self._rest(report))
        if pause > 0:
            return pause
        try:
            await self._say(report)
        except (ApiError, InvalidResponse, Unreachable) as error:
            return self._try_again(key, error)
        self._put_off.pop(key, None)
        current = self._news.get(key)
        if current is None:
            self._statuses.forget_group(key)  # the group went while it was spoken of
            self._stories.forget_group(key)
            return None
        wait = self._due_in(current)
        if wait is None:
            del self._news[key]
        return wait

    def _rest(self, report: GroupStatus) -> float:
        """Seconds for which a group that is being placed is left alone: there is news every few milliseconds."""
        if not report.scheduling or report.record is None:
            return 0.0
        return max(0.0, report.record.at + PLACING_QUIET_SECONDS - self._clock())

    async def _say(self, report: GroupStatus) -> None:
        managers = self._statuses.foreign_managers(report)
        await self._stories.write_events(report, managers)
        if self._statuses.due_in(report) == 0:
            await self._pace.acquire()
        await self._statuses.write_status(report)

    def _due_in(self, report: GroupStatus) -> float | None:
        managers = self._statuses.foreign_managers(report)
        waits = [self._statuses.due_in(report), self._stories.due_in(report, managers)]
        known = [it for it in waits if it is not None]
        return min(known) if known else None

    def _try_again(self, key: PodGroupKey, error: Exception) -> float | None:
        if is_namespace_terminating(error):
            self._news.pop(key, None)
            return None
        advised = error.retry_after if isinstance(error, ApiError) else None
        pause = advised or self._again
        self._put_off[key] = self._patience() + pause
        self._failed()
        _log.warning("not said", group=key.path, error=str(error), again=pause)
        return pause
