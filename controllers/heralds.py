"""Says what there is to say of gangs, in its own time: conditions and Events have a queue and workers of their own.

Each such write passes the admission webhooks of its namespace. One that hangs or is refused there must hold up neither
a verdict nor a timer, of its own gang or of another. Of each gang only the last word is kept.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from controllers.keys import Key
from controllers.queue import WorkQueue
from controllers.refusals import terminating
from controllers.statuses import PROGRESS_EVERY, Statuses
from controllers.ticks import ticks
from jobset_gate import names
from jobset_gate.kube.errors import ApiError, BadAnswer, Unreachable
from jobset_gate.model import Condition, JobSetSeen

HERALDS = 32
"""Gangs of which something is being said at once."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _News:
    jobset: JobSetSeen
    condition: Condition
    generation: str


class Heralds:
    """What is still to be said. `failed` is told of each write that did not succeed; it is repeated after `again`."""

    def __init__(
        self,
        statuses: Statuses,
        queue: WorkQueue[Key],
        *,
        again: float = PROGRESS_EVERY,
        failed: Callable[[], None] = lambda: None,
        clock: Callable[[], float] = ticks,
    ) -> None:
        self._statuses, self._queue = statuses, queue
        self._again, self._failed, self._clock = again, failed, clock
        self._news: dict[Key, _News] = {}
        self._put_off: dict[Key, tuple[str, float]] = {}
        """The reason that could not be said the last time, and when to try again."""

    def want(self, jobset: JobSetSeen, condition: Condition, generation: str = "") -> None:
        """This is what the gang's condition shall say from now on."""
        key = Key(jobset.namespace, jobset.name)
        wait = self._statuses.due_in(jobset, condition)
        if wait is None:
            self._news.pop(key, None)
            return
        news = self._news[key] = _News(jobset, condition, generation)
        self._queue.add_after(key, max(wait, self._pause(key, news)))

    def rest(self, key: Key) -> None:
        """The gang is nobody's business any more; a verdict that was taken is still told."""
        news = self._news.get(key)
        if news is None or news.condition.reason == names.REASON_WAITING:
            self.forget(key)

    def forget(self, key: Key) -> None:
        """The JobSet is gone."""
        self._news.pop(key, None)
        self._put_off.pop(key, None)
        self._statuses.forget(key)

    async def reconcile(self, key: Key) -> float | None:
        """Says the last word on a gang. Returns the seconds after which to try again, if it could not be said yet."""
        news = self._news.get(key)
        if news is None:
            return None
        pause = self._pause(key, news)
        if pause > 0:
            return pause
        try:
            wait = await self._statuses.tell(news.jobset, news.condition, news.generation)
        except (ApiError, BadAnswer, Unreachable) as error:
            return self._try_again(key, news, error)
        self._put_off.pop(key, None)
        self._said(key, news, wait)
        return wait

    def _said(self, key: Key, news: _News, wait: float | None) -> None:
        current = self._news.get(key)
        if current is None:
            self._statuses.forget(key)  # the gang went while it was said
        elif current is news and wait is None:
            del self._news[key]

    def _try_again(self, key: Key, news: _News, error: Exception) -> float | None:
        if terminating(error):
            self.forget(key)
            return None
        advised = error.retry_after if isinstance(error, ApiError) else None
        pause = advised or self._again
        self._put_off[key] = news.condition.reason, self._clock() + pause
        self._failed()
        _log.warning("not said", gang=str(key), reason=news.condition.reason, error=str(error), again=pause)
        return pause

    def _pause(self, key: Key, news: _News) -> float:
        """Seconds until this may be tried; other words than those that failed may be tried at once."""
        reason, until = self._put_off.get(key, ("", -math.inf))
        return max(0.0, until - self._clock()) if reason == news.condition.reason else 0.0
