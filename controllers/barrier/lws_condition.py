"""Writes the condition GroupStarted of LeaderWorkerSets, from a work queue of its own (K7, A9).

Each is computed from the cache and from what the last passes over the groups found, so a successor writes the same.
"""

import math
from collections.abc import Callable

import structlog

from controllers.barrier.cache import GangCache
from controllers.barrier.workloads import condition_body, write_shared_condition
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import DesiredCondition, GangKey, WorkloadSeen
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Conflict, NotFound, RequestFailed, is_namespace_terminating
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.workqueue import Requeue, WorkQueue
from jobset_gate.sources import lws, lws_condition
from jobset_gate.sources.lws_condition import GroupState
from jobset_gate.sources.table import LWS

WORKERS = 8
BATCH_DELAY = 0.25
"""Seconds from a change of a group to the write: groups that start together make one."""

_log = structlog.get_logger(__name__)


class LwsConditionWriter:
    """`reconcile` runs in a Controller on `queue`, whose keys have the name of the LeaderWorkerSet.

    `interval`: seconds between two writes that differ in the message only, and from a failed write to the next attempt.
    """

    def __init__(
        self,
        client: Client,
        cache: GangCache,
        queue: WorkQueue[GangKey],
        clock: Callable[[], float],
        *,
        interval: float,
        on_failure: Callable[[], None] = lambda: None,
    ) -> None:
        self._client, self._cache, self._queue, self._clock = client, cache, queue, clock
        self._interval, self._on_failure = interval, on_failure
        self._found: dict[GangKey, tuple[str, DesiredCondition]] = {}
        """By group: UID of the leader, and what the last pass found."""
        self._written: dict[GangKey, tuple[float, str, DesiredCondition]] = {}
        """Time, UID and content of the last write."""
        self._retry_at: dict[GangKey, float] = {}
        """Time of the next attempt after a failed one."""

    def set_group(self, workload: WorkloadSeen, condition: DesiredCondition) -> None:
        """What a pass over this group found."""
        key, found = workload.key, (workload.uid, condition)
        if self._found.get(key) != found:
            self._found[key] = found
            self.on_change((key.namespace, lws.parent_name(key)))

    def forget_group(self, key: GangKey) -> None:
        """It has no leader, or the leader ends."""
        if self._found.pop(key, None) is not None:
            self.on_change((key.namespace, lws.parent_name(key)))

    def on_change(self, parent: tuple[str, str]) -> None:
        """This LeaderWorkerSet or a group of it has changed."""
        self._queue.add_after(GangKey(*parent, LWS.name), BATCH_DELAY)

    async def reconcile(self, key: GangKey) -> float | None:
        """Writes the condition if it is due. Returns seconds to the next attempt, None if it stands."""
        seen = self._cache.leader_worker_sets.get((key.namespace, key.name))
        if seen is None or seen.deleting:
            self._written.pop(key, None)
            self._retry_at.pop(key, None)
            return None
        condition = self.condition_of(seen) if seen.has_config else None
        wait = self._write_delay(key, seen, condition)
        if wait is None:
            return None
        if (wait := max(wait, self._retry_at.get(key, -math.inf) - monotonic())) > 0:
            return wait
        # None removes it: the config was removed, and the groups that come do not wait for each other.
        bodies = [] if condition is None else [condition_body(condition, seen.condition, self._clock())]
        try:
            await write_shared_condition(self._client, seen, bodies)
        except NotFound:
            return None  # deleted
        except Conflict as changed:
            raise Requeue(f"the LeaderWorkerSet {key} has changed since it was cached") from changed
        except RequestFailed as error:
            return self._on_error(key, error)
        self._retry_at.pop(key, None)
        if condition is not None:
            self._written[key] = monotonic(), seen.uid, condition
        return None

    def condition_of(self, seen: lws.LeaderWorkerSetSeen) -> DesiredCondition:
        """What it should say now."""
        groups: dict[int, GroupState] = {}
        for key in self._cache.groups_of(seen.namespace, seen.name):
            index, state = lws.group_index(key), self._group(key)
            if 0 <= index < seen.replicas and state is not None:
                groups[index] = state
        return lws_condition.condition(seen.name, seen.replicas, groups)

    def _group(self, key: GangKey) -> GroupState | None:
        workload = self._cache.get_workload(key)
        if workload is None or workload.deleting or workload.finished:
            return None
        uid, condition = self._found.get(key, ("", None))
        if condition is None or uid != workload.uid:
            verdict = self._cache.get_verdict(key)
            condition = None if verdict is None else messages.decided(verdict)
        return GroupState(waits_since=workload.created, condition=condition)

    def _write_delay(
        self, key: GangKey, seen: lws.LeaderWorkerSetSeen, condition: DesiredCondition | None
    ) -> float | None:
        """Seconds until it is to be written, None if it stands already."""
        current = seen.condition
        if condition is None:
            return 0.0
        if current is not None and current.says(condition):
            return None
        at, uid, last = self._written.get(key, (-math.inf, "", None))
        before = last if last is not None and uid == seen.uid else current
        # Written, and the watch has not shown it yet, or another client removed it; or the message alone differs.
        slowly = before is not None and (before.status, before.reason) == (condition.status, condition.reason)
        return max(0.0, at + self._interval - monotonic()) if slowly else 0.0

    def _on_error(self, key: GangKey, error: RequestFailed) -> float | None:
        if is_namespace_terminating(error):
            return None
        delay = error.retry_after or self._interval
        self._retry_at[key] = monotonic() + delay
        self._on_failure()
        _log.warning("condition not written", **key.log_fields(), error=str(error), retry_after=delay)
        return delay
