"""Says what there is to say of gangs, in its own time: conditions and Events have a queue and workers of their own.

Each such write passes the admission webhooks of its namespace. One that hangs or is refused there must hold up neither
a verdict nor a timer, of its own gang or of another. Of each gang only the last word is kept.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controllers.barrier.conditions import PROGRESS_INTERVAL, ConditionWriter
from jobset_gate import names
from jobset_gate.barrier.model import DesiredCondition, GangKey, JobSetSeen
from jobset_gate.kube.errors import ApiError, InvalidResponse, Unreachable, is_namespace_terminating
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.workqueue import WorkQueue

STATUS_WORKERS = 32
"""Gangs of which something is being said at once."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Desired:
    jobset: JobSetSeen
    condition: DesiredCondition
    generation: str


class GangStatusWriter:
    """What is still to be said. `failed` is told of each write that did not succeed; it is repeated after `again`."""

    def __init__(
        self,
        conditions: ConditionWriter,
        queue: WorkQueue[GangKey],
        *,
        retry_after: float = PROGRESS_INTERVAL,
        on_failure: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._conditions, self._queue = conditions, queue
        self._retry_after, self._on_failure, self._clock = retry_after, on_failure, clock
        self._desired: dict[GangKey, _Desired] = {}
        self._retry_at: dict[GangKey, tuple[str, float]] = {}
        """The reason that could not be said the last time, and when to try again."""

    def set_desired(self, jobset: JobSetSeen, condition: DesiredCondition, generation: str = "") -> None:
        """This is what the gang's condition shall say from now on."""
        key = GangKey(jobset.namespace, jobset.name)
        wait = self._conditions.write_delay(jobset, condition)
        if wait is None:
            self._desired.pop(key, None)
            return
        news = self._desired[key] = _Desired(jobset, condition, generation)
        self._queue.add_after(key, max(wait, self._retry_delay(key, news)))

    def quiesce(self, key: GangKey) -> None:
        """The gang is nobody's business any more; a verdict that was taken is still told."""
        news = self._desired.get(key)
        if news is None or news.condition.reason == names.REASON_WAITING:
            self.forget_gang(key)

    def forget_gang(self, key: GangKey) -> None:
        """The JobSet is gone."""
        self._desired.pop(key, None)
        self._retry_at.pop(key, None)
        self._conditions.forget_gang(key)

    async def reconcile(self, key: GangKey) -> float | None:
        """Says the last word on a gang. Returns the seconds after which to try again, if it could not be said yet."""
        news = self._desired.get(key)
        if news is None:
            return None
        pause = self._retry_delay(key, news)
        if pause > 0:
            return pause
        try:
            wait = await self._conditions.write_condition(news.jobset, news.condition, news.generation)
        except (ApiError, InvalidResponse, Unreachable) as error:
            return self._on_error(key, news, error)
        self._retry_at.pop(key, None)
        self._on_written(key, news, wait)
        return wait

    def _on_written(self, key: GangKey, news: _Desired, wait: float | None) -> None:
        current = self._desired.get(key)
        if current is None:
            self._conditions.forget_gang(key)  # the gang went while it was said
        elif current is news and wait is None:
            del self._desired[key]

    def _on_error(self, key: GangKey, news: _Desired, error: Exception) -> float | None:
        if is_namespace_terminating(error):
            self.forget_gang(key)
            return None
        advised = error.retry_after if isinstance(error, ApiError) else None
        pause = advised or self._retry_after
        self._retry_at[key] = news.condition.reason, self._clock() + pause
        self._on_failure()
        _log.warning("not said", gang=str(key), reason=news.condition.reason, error=str(error), again=pause)
        return pause

    def _retry_delay(self, key: GangKey, news: _Desired) -> float:
        """Seconds until this may be tried; other words than those that failed may be tried at once."""
        reason, until = self._retry_at.get(key, ("", -math.inf))
        return max(0.0, until - self._clock()) if reason == news.condition.reason else 0.0
