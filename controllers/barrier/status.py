"""Writes the condition GroupStarted and Events from a work queue of their own (A9).

These writes pass the admission webhooks of the workload's namespace. One that hangs or is denied there must not delay a
verdict or a timeout of any gang. Only the latest condition of each gang is kept.
"""

import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

import structlog

from controllers.barrier.lws_condition import LwsConditionWriter
from controllers.barrier.workloads import condition_body, write_condition
from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import DesiredCondition, GangKey, WorkloadSeen
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Conflict, Invalid, NotFound, RequestFailed, is_namespace_terminating, is_stale_patch
from jobset_gate.runtime.clock import monotonic as loop_time
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference
from jobset_gate.runtime.store import ObjectVersion
from jobset_gate.runtime.workqueue import Requeue, WorkQueue

STATUS_WORKERS = 32
PROGRESS_INTERVAL = 15.0
"""Seconds between two writes that differ in the message only: each may conflict with another controller's write."""
WORDING_INTERVAL = 300.0
"""The same if the messages mean the same: the scheduler or a kubelet only worded it differently."""

_WARNINGS = frozenset(
    {
        names.REASON_TIMED_OUT,
        names.REASON_INDEX_FAILED,
        names.REASON_GATE_MISSING,
        names.REASON_CONFIG_MAP_CONFLICT,
        names.REASON_CANNOT_GATHER,
    }
)

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class _Desired:
    workload: WorkloadSeen
    condition: DesiredCondition
    generation: str


class GangStatusWriter:
    """Keeps the desired condition of each gang until it is written; `reconcile` runs in a Controller on `queue`.

    `clock` dates what is written; `version`: the version of a workload in the informer's cache; `annotate` writes the
    condition of a workload that is no object of its own, `shared` one that counts several gangs; `interval`: seconds
    between two writes of progress, and from a failed write to the next attempt.
    """

    def __init__(
        self,
        client: Client,
        clock: Callable[[], float],
        queue: WorkQueue[GangKey],
        *,
        version: Callable[[GangKey], ObjectVersion | None],
        annotate: Callable[[WorkloadSeen, DesiredCondition], Awaitable[None]] | None = None,
        shared: LwsConditionWriter | None = None,
        interval: float = PROGRESS_INTERVAL,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self._clock, self._queue, self._version = client, clock, queue, version
        self._annotate, self._shared, self._interval, self._on_failure = annotate, shared, interval, on_failure
        self._recorder = EventRecorder(client, names.PROGRAM, clock)
        self._desired: dict[GangKey, _Desired] = {}
        self._written: dict[GangKey, tuple[float, str, DesiredCondition]] = {}
        """Time and workload's UID of the last write."""
        self._retry_at: dict[GangKey, tuple[str, float]] = {}
        """Reason of the last failed write, and the time of the next attempt."""
        self._warnings: dict[GangKey, dict[tuple[str, str], _Desired | None]] = {}
        """By reason and generation; None once the Event was written."""

    def set_desired(self, workload: WorkloadSeen, condition: DesiredCondition, generation: str = "") -> None:
        """Desired condition from now on; `generation` distinguishes Events of one reason."""
        key = workload.key
        if self._shared is not None and workload.source.shares_condition:
            self._shared.set_group(workload, condition)
        desired = _Desired(workload, condition, generation)
        wait = self._write_delay(key, desired)
        if wait is None:
            self._desired.pop(key, None)
            return
        self._desired[key] = desired
        self._queue.add_after(key, max(wait, self._retry_delay(key, desired)))

    def warn(self, workload: WorkloadSeen, reason: str, message: str) -> None:
        """Writes a Warning Event, once for each attempt of the workload."""
        found, generation = self._warnings.setdefault(workload.key, {}), str(workload.attempt)
        if (reason, generation) not in found:
            said = DesiredCondition(status="", reason=reason, message=message)
            found[reason, generation] = _Desired(workload, said, generation)
            self._queue.add(workload.key)

    def quiesce(self, key: GangKey) -> None:
        """The gang is not managed any more; a verdict is still reported."""
        if self._shared is not None:
            self._shared.forget_group(key)
        desired = self._desired.get(key)
        if desired is None or desired.condition.reason in messages.WAITING:
            self.forget_gang(key)

    def forget_gang(self, key: GangKey) -> None:
        """The workload is gone."""
        for kept in (self._desired, self._written, self._retry_at, self._warnings):
            kept.pop(key, None)

    async def reconcile(self, key: GangKey) -> float | None:
        """Writes the desired condition if it is due, and before it an Event unless the gang waits.

        Returns seconds to the next attempt, None if it is written. Raises Requeue if the cached workload is stale. The
        Event's name is made from the fact: after a crash between the two writes the API server refuses a second one.
        """
        await self._write_warnings(key)
        desired = self._desired.get(key)
        if desired is None:
            return None
        wait = self._write_delay(key, desired)
        if wait is not None and (wait := max(wait, self._retry_delay(key, desired))) > 0:
            return wait
        try:
            if wait is not None:
                await self._write(key, desired)
        except RequestFailed as error:
            return self._on_error(key, desired, error)
        self._retry_at.pop(key, None)
        current = self._desired.get(key)
        if current is None:
            self.forget_gang(key)  # the gang was deleted during the write
        elif current is desired:
            del self._desired[key]
        return None

    async def _write_warnings(self, key: GangKey) -> None:
        """One that could not be written is forgotten, and comes again with the next pass."""
        found = self._warnings.get(key, {})
        for fact, warning in [*found.items()]:
            if warning is None:
                continue
            try:
                await self._record(warning, warning=True)
            except RequestFailed as error:
                found.pop(fact, None)
                _log.warning("event not written", **key.log_fields(), error=str(error))
            else:
                found[fact] = None

    def _on_error(self, key: GangKey, desired: _Desired, error: RequestFailed) -> float | None:
        if is_namespace_terminating(error):
            self.forget_gang(key)
            return None
        delay = error.retry_after or self._interval
        self._retry_at[key] = desired.condition.reason, loop_time() + delay
        self._on_failure()
        _log.warning("condition not written", **key.log_fields(), error=str(error), retry_after=delay)
        return delay

    def _retry_delay(self, key: GangKey, desired: _Desired) -> float:
        """Seconds to the next attempt; 0 for another reason than the one whose write failed."""
        reason, until = self._retry_at.get(key, ("", -math.inf))
        return max(0.0, until - loop_time()) if reason == desired.condition.reason else 0.0

    def _write_delay(self, key: GangKey, desired: _Desired) -> float | None:
        """Seconds until this condition is to be written, None if it stands already. A stale start delays the user."""
        condition, current = desired.condition, desired.workload.condition
        if desired.workload.stale_start:
            return 0.0
        at, uid, last = self._written.get(key, (-math.inf, "", None))
        if current is not None and current.says(condition):
            return None
        if desired.workload.source.shares_condition:  # only an Event is written for it alone
            said = uid == desired.workload.uid and last is not None and last.reason == condition.reason
            return None if said or condition.reason == names.REASON_WAITING else 0.0
        before = last if last is not None and uid == desired.workload.uid else current
        progress_only = before is not None and (before.status, before.reason) == (condition.status, condition.reason)
        # Written, and the watch has not shown it yet, or another client removed it: write it again, but slowly.
        repeated = before is last and last == condition
        if repeated or (progress_only and condition.reason in messages.WAITING):
            same_meaning = before is not None and _differs_in_noise(before.message, condition.message)
            return max(0.0, at + max(WORDING_INTERVAL if same_meaning else 0.0, self._interval) - loop_time())
        return 0.0

    async def _write(self, key: GangKey, desired: _Desired) -> None:
        workload, condition = desired.workload, desired.condition
        source = workload.source
        if condition.reason != names.REASON_WAITING:
            await self._record(desired, warning=condition.reason in _WARNINGS)
        if source.gates_pods:
            if source.keeps_attempt and self._annotate is not None:
                await self._annotate(workload, condition)
            self._written[key] = (loop_time(), workload.uid, condition)
            return
        version = self._version(key)
        if version is None or version.uid != workload.uid:
            return  # deleted; a new workload of that name causes its own pass
        body = condition_body(condition, workload.condition, self._clock())
        try:
            await write_condition(self._client, workload, version, body)
        except NotFound:
            return  # deleted
        except (Conflict, Invalid) as changed:
            if isinstance(changed, Invalid) and not is_stale_patch(changed):
                raise
            raise Requeue(f"the {source.kind} {key} has changed since it was cached") from changed
        self._written[key] = (loop_time(), workload.uid, condition)

    async def _record(self, desired: _Desired, *, warning: bool) -> None:
        workload, condition = desired.workload, desired.condition
        source, its, uid = workload.source, workload.involved_object, workload.uid
        who, message = uid, condition.message
        if source.keeps_attempt:  # one owner may have pods of several
            who, message = workload.name, f"{source.resource} {workload.shown_name}: {message}"
        elif source.shares_condition:  # so may a LeaderWorkerSet, which has a UID of its own
            who, message = f"{workload.name} {uid}", f"{source.resource}/{workload.shown_name}: {message}"
            uid = its.uid
        await self._recorder.record(
            ObjectReference(its.api_version, its.kind, its.name, workload.namespace, uid),
            condition.reason,
            message,
            fact=f"{who} {condition.reason} {desired.generation}",
            warning=warning,
        )


def _differs_in_noise(before: str, message: str) -> bool:
    """True if the messages mean the same and the new one is not longer: a kubelet reports an error only at times."""
    if before == message or len(message) > len(before):
        return False
    return messages.without_noise(before) == messages.without_noise(message)
