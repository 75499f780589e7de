"""Writes the condition GroupStarted and Events from a work queue of their own (A9).

These writes pass the admission webhooks of the JobSet's namespace. One that hangs or is denied there must not delay a
verdict or a timeout of any gang. Only the latest condition of each gang is kept.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime

import structlog

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import DesiredCondition, GangKey, JobSetSeen
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import (
    ApiError,
    Conflict,
    InvalidResponse,
    NotFound,
    Unreachable,
    is_namespace_terminating,
)
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.runtime.clock import monotonic as loop_time
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference
from jobset_gate.runtime.store import ObjectVersion
from jobset_gate.runtime.workqueue import Requeue, WorkQueue

STATUS_WORKERS = 32
PROGRESS_INTERVAL = 15.0
"""Seconds between two writes that differ in the message only: each may conflict with the JobSet controller's write."""
WORDING_INTERVAL = 300.0
"""The same if the messages mean the same: the scheduler or a kubelet only worded it differently."""

_WARNINGS = frozenset({names.REASON_TIMED_OUT, names.REASON_GATE_MISSING, names.REASON_CONFIG_MAP_CONFLICT})

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Desired:
    jobset: JobSetSeen
    condition: DesiredCondition
    generation: str


class GangStatusWriter:
    """Keeps the desired condition of each gang until it is written; `reconcile` runs in a Controller on `queue`."""

    def __init__(
        self,
        conditions: "ConditionWriter",
        queue: WorkQueue[GangKey],
        *,
        retry_after: float = PROGRESS_INTERVAL,
        on_failure: Callable[[], None] = lambda: None,
        monotonic: Callable[[], float] = loop_time,
    ) -> None:
        self._conditions, self._queue = conditions, queue
        self._retry_after, self._on_failure, self._monotonic = retry_after, on_failure, monotonic
        self._desired: dict[GangKey, _Desired] = {}
        self._retry_at: dict[GangKey, tuple[str, float]] = {}
        """Reason of the last failed write, and the time of the next attempt."""

    def set_desired(self, jobset: JobSetSeen, condition: DesiredCondition, generation: str = "") -> None:
        """Desired condition from now on; `generation` distinguishes Events of one reason."""
        key = GangKey(jobset.namespace, jobset.name)
        wait = self._conditions.write_delay(jobset, condition)
        if wait is None:
            self._desired.pop(key, None)
            return
        desired = self._desired[key] = _Desired(jobset, condition, generation)
        self._queue.add_after(key, max(wait, self._retry_delay(key, desired)))

    def quiesce(self, key: GangKey) -> None:
        """The gang is not managed any more; a verdict is still reported."""
        desired = self._desired.get(key)
        if desired is None or desired.condition.reason == names.REASON_WAITING:
            self.forget_gang(key)

    def forget_gang(self, key: GangKey) -> None:
        """The JobSet is gone."""
        self._desired.pop(key, None)
        self._retry_at.pop(key, None)
        self._conditions.forget_gang(key)

    async def reconcile(self, key: GangKey) -> float | None:
        """Writes the desired condition. Returns seconds to the next attempt, None if it is written."""
        desired = self._desired.get(key)
        if desired is None:
            return None
        delay = self._retry_delay(key, desired)
        if delay > 0:
            return delay
        try:
            wait = await self._conditions.write_condition(desired.jobset, desired.condition, desired.generation)
        except (ApiError, InvalidResponse, Unreachable) as error:
            return self._on_error(key, desired, error)
        self._retry_at.pop(key, None)
        current = self._desired.get(key)
        if current is None:
            self._conditions.forget_gang(key)  # the gang was deleted during the write
        elif current is desired and wait is None:
            del self._desired[key]
        return wait

    def _on_error(self, key: GangKey, desired: _Desired, error: Exception) -> float | None:
        if is_namespace_terminating(error):
            self.forget_gang(key)
            return None
        delay = (error.retry_after if isinstance(error, ApiError) else None) or self._retry_after
        self._retry_at[key] = desired.condition.reason, self._monotonic() + delay
        self._on_failure()
        _log.warning("condition not written", **key.log_fields(), error=str(error), retry_after=delay)
        return delay

    def _retry_delay(self, key: GangKey, desired: _Desired) -> float:
        """Seconds to the next attempt; 0 for another reason than the one whose write failed."""
        reason, until = self._retry_at.get(key, ("", -math.inf))
        return max(0.0, until - self._monotonic()) if reason == desired.condition.reason else 0.0


class ConditionWriter:
    """`clock` dates what is written; `version`: the version of a JobSet in the informer's cache."""

    def __init__(
        self,
        client: Client,
        clock: Callable[[], float],
        progress_interval: float = PROGRESS_INTERVAL,
        *,
        version: Callable[[GangKey], ObjectVersion | None],
        monotonic: Callable[[], float] = loop_time,
    ) -> None:
        self._client, self._clock, self._version, self._monotonic = client, clock, version, monotonic
        self._recorder = EventRecorder(client, names.PROGRAM, clock)
        self._progress_interval = progress_interval
        self._written: dict[GangKey, tuple[float, str, DesiredCondition]] = {}

    def write_delay(self, jobset: JobSetSeen, condition: DesiredCondition) -> float | None:
        """Seconds until this condition is to be written, None if it is not."""
        at, uid, last = self._written.get(GangKey(jobset.namespace, jobset.name), (-math.inf, "", None))
        current = jobset.condition
        if current is not None and _comparable(current) == _comparable(condition):
            return None
        before = last if last is not None and uid == jobset.uid else current
        progress_only = before is not None and (before.status, before.reason) == (condition.status, condition.reason)
        # Written, and the watch has not shown it yet, or another client removed it: write it again, but slowly.
        repeated = before is last and last == condition
        if repeated or (progress_only and condition.reason == names.REASON_WAITING):
            same_meaning = before is not None and _differs_in_noise(before.message, condition.message)
            interval = max(WORDING_INTERVAL if same_meaning else 0.0, self._progress_interval)
            return max(0.0, at + interval - self._monotonic())
        return 0.0

    async def write_condition(
        self, jobset: JobSetSeen, condition: DesiredCondition, generation: str = ""
    ) -> float | None:
        """Writes the condition if it is due, and before it an Event unless the gang waits.

        Returns seconds until it is due, None if it is written. Raises Requeue if the cached JobSet is stale. The
        Event's name is made from the fact: after a crash between the two writes the API server refuses a second one.
        """
        wait = self.write_delay(jobset, condition)
        if wait is None or wait > 0:
            return wait
        if condition.reason != names.REASON_WAITING:
            await self._create_event(jobset, condition, generation)
        await self._apply_condition(jobset, condition)
        return None

    def forget_gang(self, key: GangKey) -> None:
        """The JobSet is gone."""
        self._written.pop(key, None)

    async def _apply_condition(self, jobset: JobSetSeen, condition: DesiredCondition) -> None:
        key = GangKey(jobset.namespace, jobset.name)
        version = self._version(key)
        if version is None or version.uid != jobset.uid:
            return  # deleted; a new JobSet of that name causes its own pass
        now = self._clock()
        current = jobset.condition
        same = current is not None and current.status == condition.status and current.since
        since = current.since if same and current else datetime.fromtimestamp(int(now), UTC).isoformat()
        body = {
            # The API server ignores metadata.uid in status writes of custom resources and honours resourceVersion:
            # so the condition is never written to a new JobSet of the same name.
            "metadata": {"resourceVersion": version.resource_version},
            "status": {
                "conditions": [
                    {
                        "type": names.CONDITION,
                        "status": condition.status,
                        "reason": condition.reason,
                        "message": condition.message,
                        "lastTransitionTime": since.replace("+00:00", "Z"),
                    }
                ]
            },
        }
        try:
            await self._client.patch(
                JOBSETS,
                jobset.name,
                jobset.namespace,
                body=body,
                patch=PatchType.APPLY,
                subresource="status",
                field_manager=names.FIELD_MANAGER,
                force=True,
            )
        except NotFound:
            return  # deleted
        except Conflict as changed:
            raise Requeue(f"the JobSet {key} has changed since it was cached") from changed
        self._written[key] = (self._monotonic(), jobset.uid, condition)

    async def _create_event(self, jobset: JobSetSeen, condition: DesiredCondition, generation: str) -> None:
        await self._recorder.record(
            ObjectReference(names.JOBSET_API_VERSION, "JobSet", jobset.name, jobset.namespace, jobset.uid),
            condition.reason,
            condition.message,
            fact=f"{jobset.uid} {condition.reason} {generation}",
            warning=condition.reason in _WARNINGS,
        )


def _differs_in_noise(before: str, message: str) -> bool:
    """True if the messages mean the same and the new one is not longer: a kubelet reports an error only at times."""
    if before == message or len(message) > len(before):
        return False
    return messages.without_noise(before) == messages.without_noise(message)


def _comparable(condition: DesiredCondition) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message
