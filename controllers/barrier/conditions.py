"""Tells people: our condition on the JobSet and an Event for what has happened (A9), both only when there is news."""

import math
from collections.abc import Callable
from datetime import UTC, datetime

from jobset_gate import names
from jobset_gate.barrier import messages
from jobset_gate.barrier.model import ConditionSeen, DesiredCondition, GangKey, JobSetSeen
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, NotFound
from jobset_gate.kube.resources import JOBSETS
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference
from jobset_gate.runtime.store import ObjectVersion
from jobset_gate.runtime.workqueue import Requeue

PROGRESS_INTERVAL = 15.0
"""Seconds between two writes of which only the message differs: each may make the JobSet controller's own retry."""
WORDING_INTERVAL = 300.0
"""The same while the gang is as it was, and only the scheduler or a kubelet words it otherwise."""

_WARNINGS = frozenset({names.REASON_TIMED_OUT, names.REASON_GATE_MISSING, names.REASON_CONFIG_MAP_CONFLICT})


class ConditionWriter:
    """Conditions and Events of all gangs."""

    def __init__(
        self,
        client: Client,
        clock: Callable[[], float],
        progress_interval: float = PROGRESS_INTERVAL,
        *,
        version: Callable[[GangKey], ObjectVersion | None],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        """`clock` dates what is written; `patience` measures pauses, and is a clock that nobody sets.

        `version`: which version of a JobSet the informer's cache holds.
        """
        self._client, self._clock, self._version, self._monotonic = client, clock, version, monotonic
        self._recorder = EventRecorder(client, names.PROGRAM, clock)
        self._progress_interval = progress_interval
        self._written: dict[GangKey, tuple[float, str, DesiredCondition]] = {}

    def write_delay(self, jobset: JobSetSeen, condition: DesiredCondition) -> float | None:
        """Seconds until this condition should be written: 0 now, None not at all."""
        at, uid, last = self._written.get(GangKey(jobset.namespace, jobset.name), (-math.inf, "", None))
        stands = jobset.condition
        if stands is not None and _comparable(stands) == _comparable(condition):
            return None
        told = last if last is not None and uid == jobset.uid else stands
        progress_only = told is not None and (told.status, told.reason) == (condition.status, condition.reason)
        # Written already, and the watch has not shown it yet, or somebody took it away: tell it again, but slowly.
        repeated = told is last and last == condition
        if repeated or (progress_only and condition.reason == names.REASON_WAITING):
            every = WORDING_INTERVAL if told is not None and _differs_in_noise(told.message, condition.message) else 0.0
            return max(0.0, at + max(every, self._progress_interval) - self._monotonic())
        return 0.0

    async def write_condition(
        self, jobset: JobSetSeen, condition: DesiredCondition, generation: str = ""
    ) -> float | None:
        """Writes the condition if it is due, an Event before it if it says that something has happened.

        Returns the seconds after which to come back for a write that was put off, None if there is none. Raises
        LookAgain when the cache holds no longer the JobSet's latest version. The Event
        comes first, under a name made from the fact: after a crash between the two both are repeated, and the API
        server refuses the second Event of that name.
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
            return  # deleted meanwhile: its successor's own events bring us back
        now = self._clock()
        stands = jobset.condition
        same = stands is not None and stands.status == condition.status and stands.since
        since = stands.since if same and stands else datetime.fromtimestamp(int(now), UTC).isoformat()
        body = {
            # In a write of a custom resource's status the API server ignores metadata.uid, and honours resourceVersion:
            # with it a JobSet made meanwhile under the same name refuses what was written for its predecessor.
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
            return  # deleted meanwhile: nobody is left to be told
        except Conflict as changed:
            raise Requeue(f"the JobSet {key} has changed since the cache was told of it") from changed
        self._written[key] = (self._monotonic(), jobset.uid, condition)

    async def _create_event(self, jobset: JobSetSeen, condition: DesiredCondition, generation: str) -> None:
        await self._recorder.record(
            ObjectReference(names.JOBSET_API_VERSION, "JobSet", jobset.name, jobset.namespace, jobset.uid),
            condition.reason,
            condition.message,
            fact=f"{jobset.uid} {condition.reason} {generation}",
            warning=condition.reason in _WARNINGS,
        )


def _differs_in_noise(told: str, message: str) -> bool:
    """Whether it says the same in other words, and not more of them: a kubelet gives its reason only while it tries."""
    return (
        told != message
        and len(message) <= len(told)
        and messages.without_noise(told) == messages.without_noise(message)
    )


def _comparable(condition: DesiredCondition | ConditionSeen) -> tuple[str, str, str]:
    return condition.status, condition.reason, condition.message
