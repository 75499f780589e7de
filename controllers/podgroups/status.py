"""Status and Events of pod groups, from a work queue of their own, so that a slow write delays no admission (G5).

The worker reads the group when its turn has come, so only the latest state is written, and none while pods are placed.
"""

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from controllers.podgroups.metrics import PodGroupMetrics
from controllers.podgroups.record_store import resource_of, wire_type
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Forbidden, Invalid, NotFound, RequestFailed, is_namespace_terminating
from jobset_gate.kube.resources import CRDS, POD_GROUPS
from jobset_gate.objects.caches import TTLCache
from jobset_gate.podgroups import generation, podgroup_status
from jobset_gate.podgroups.events import GroupEvent, group_events
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.flowcontrol import RateLimiter
from jobset_gate.runtime.recorder import EventRecorder, ObjectReference

STATUS_WORKERS: Final = 8

WRITES_PER_SECOND: Final = 20.0
WRITE_BURST: Final = 40
"""Of statuses and Events: a thousand groups that are placed at once must not take kube-scheduler's share of the API."""

QUIET_SECONDS: Final = 10.0
"""After an admission, in which nothing is written while the scheduler places the pods."""

MAX_EVENT_AGE: Final = 600.0
"""An older fact gets no Event: another leader has written it."""

EVENT_SPACING: Final = 30.0
"""Seconds between two Events with the same reason about one group."""

MAX_REMEMBERED: Final = 1000
"""Events of one group."""

_log = structlog.get_logger(__name__)

_Identity = tuple[str, str, str]
"""Of an Event: its reason, what makes it the same fact, and the UID of its object."""


class PodGroupStatusReconciler:
    """Writes what is due of one group."""

    def __init__(
        self,
        snapshot: Callable[[PodGroupKey], GroupSnapshot | None],
        report: Callable[[GroupSnapshot], GroupStatus],
        writer: "PodGroupStatusWriter",
        events: "PodGroupEventWriter",
        *,
        metrics: PodGroupMetrics,
        clock: Callable[[], float],
    ) -> None:
        self._snapshot, self._report, self._writer, self._events = snapshot, report, writer, events
        self._metrics, self._clock = metrics, clock
        self._admitted: dict[PodGroupKey, float] = {}
        """The time of the admission that the metrics count as being placed."""

    async def reconcile(self, key: PodGroupKey) -> float | None:
        """Returns the seconds until something is due, if nothing changes before."""
        try:
            return await self._write(key)
        except Forbidden as refused:
            if is_namespace_terminating(refused):
                return None
            raise

    async def _write(self, key: PodGroupKey) -> float | None:
        seen = self._snapshot(key)
        if seen is None:
            self._forget_group(key)
            return None
        quiet, admitted_at = self._quiet_seconds(seen), 0.0 if seen.record is None else seen.record.at
        if quiet > 0 and self._admitted.get(key) == admitted_at:
            return quiet
        report = self._report(seen)
        self._metrics.observe_report(report)
        if quiet > 0:
            self._admitted[key] = admitted_at
            return quiet
        waits = (await self._events.write_events(report), await self._writer.write_status(report))
        return min((it for it in waits if it is not None), default=None)

    def _quiet_seconds(self, seen: GroupSnapshot) -> float:
        record = seen.record
        if record is None or record.stage is not AdmissionState.OPEN or record.satisfied is not None:
            return 0.0
        if generation.count_bound(seen) >= record.minimum:
            return 0.0
        return max(0.0, record.at + QUIET_SECONDS - self._clock())

    def _forget_group(self, key: PodGroupKey) -> None:
        self._admitted.pop(key, None)
        self._writer.forget_group(key)
        self._events.forget_group(key)
        self._metrics.forget_group(key)


class PodGroupEventWriter:
    """Each fact once, no reason too often, nothing old. `clock`: Unix time."""

    def __init__(self, client: Client, limiter: RateLimiter, clock: Callable[[], float]) -> None:
        self._recorder, self._limiter, self._clock = EventRecorder(client, names.PROGRAM, clock), limiter, clock
        self._written: dict[PodGroupKey, set[_Identity]] = {}
        self._last: dict[PodGroupKey, dict[str, tuple[str, float]]] = {}
        """By reason: the last fact, and when it was written."""

    async def write_events(self, report: GroupStatus) -> float | None:
        """Writes the Events that are due. Returns the seconds until the next one, None: there is none."""
        later: list[float] = []
        for event in _events(report):
            about = self._unwritten(report, event)
            wait = self._wait(report, event)
            if about and wait > 0:
                later.append(wait)
            elif about:
                await self._write(report, event, about)
        return min(later, default=None)

    def forget_group(self, key: PodGroupKey) -> None:
        """Drops the state of a group that is gone."""
        self._written.pop(key, None)
        self._last.pop(key, None)

    def _unwritten(self, report: GroupStatus, event: GroupEvent) -> list[ObjectReference]:
        """The objects that have yet to get this Event."""
        if event.occurred_at is not None and self._clock() - event.occurred_at > MAX_EVENT_AGE:
            return []
        written = self._written.get(report.key, set())
        return [it for it in _objects(report, event) if _identity(event, it) not in written]

    def _wait(self, report: GroupStatus, event: GroupEvent) -> float:
        fact, at = self._last.get(report.key, {}).get(event.reason, ("", -math.inf))
        spacing = 0.0 if fact == event.dedup_key else at + EVENT_SPACING - monotonic()
        return max(0.0, event.not_before - self._clock(), spacing)

    async def _write(self, report: GroupStatus, event: GroupEvent, about: Iterable[ObjectReference]) -> None:
        written = self._written.setdefault(report.key, set())
        if len(written) > MAX_REMEMBERED:
            written.clear()  # a repeated Event has the same name, and the API server refuses it
        for it in about:
            identity = _identity(event, it)
            await self._limiter.acquire()
            await self._recorder.record(it, event.reason, event.message, fact=" ".join(identity), warning=event.warning)
            written.add(identity)
        self._last.setdefault(report.key, {})[event.reason] = event.dedup_key, monotonic()


def _events(report: GroupStatus) -> Iterator[GroupEvent]:
    yield from group_events(report)
    if report.managers:
        who = ", ".join(report.managers)
        text = f"{who} writes this status, so jobset-gate only reads it; its own word is in {names.POD_GROUP_STATE}"
        yield GroupEvent(reason=names.REASON_STATUS_NOT_OURS, message=text, dedup_key=who)


def _objects(report: GroupStatus, event: GroupEvent) -> Iterator[ObjectReference]:
    pod_group = report.pod_group
    if event.on_group and pod_group is not None:
        version = f"{pod_group.api}/{names.POD_GROUP_VERSION}"
        yield ObjectReference(version, names.POD_GROUP, pod_group.name, pod_group.namespace, pod_group.uid)
    for pod in event.pods:
        yield ObjectReference("v1", "Pod", pod.name, pod.namespace, pod.uid)


def _identity(event: GroupEvent, about: ObjectReference) -> _Identity:
    return event.reason, event.dedup_key, about.uid


PROGRESS_SECONDS: Final = 15.0
"""Between two writes that differ in counts and messages only."""

SETTLE_SECONDS: Final = 1.0
"""From a change until it is written: a group that gathers, or whose pods start, changes again a moment later."""

REFRESH_SECONDS: Final = 300.0
"""Between two reads of a CRD's schema."""


@dataclass(frozen=True, slots=True)
class _Patch:
    """Fields of the status to write, and the annotation (None: leave it)."""

    status: dict[str, Any]
    state: str | None
    urgent: bool
    """More than counts and messages have changed."""

    def __bool__(self) -> bool:
        return bool(self.status) or self.state is not None


@dataclass(slots=True)
class _Written:
    uid: str
    at: float = -math.inf
    status: dict[str, Any] = field(default_factory=dict)
    changed_at: float | None = None
    """Since when there is something to write."""


class PodGroupStatusWriter:
    """Statuses of all groups. `observe` puts the answers to its writes, by API group, into the informers' caches;
    `clock`: Unix time, for what is written.
    """

    def __init__(
        self, client: Client, limiter: RateLimiter, observe: Callable[[str, Any], None], clock: Callable[[], float]
    ) -> None:
        self._client, self._limiter, self._observe, self._clock = client, limiter, observe, clock
        self._fields: TTLCache[str, frozenset[str]] = TTLCache(len(POD_GROUPS), monotonic)
        """By API group."""
        self._written: dict[PodGroupKey, _Written] = {}

    async def write_status(self, report: GroupStatus) -> float | None:
        """Writes what is due. Returns the seconds until the next write, None: there is nothing more to write."""
        ref, now = report.record_ref, monotonic()
        if ref is None:
            return None
        written = self._of(report.key, ref)
        patch = self._patch_for(report, written, ref, await self._status_fields(ref.api) if ref.api else frozenset())
        if not patch:
            written.changed_at = None
            return None
        if written.changed_at is None:
            written.changed_at = now
        due = written.changed_at + SETTLE_SECONDS
        due = due if patch.urgent else max(due, written.at + PROGRESS_SECONDS)
        if due > now:
            return due - now
        await self._limiter.acquire()
        try:
            if patch.status:
                # The API server ignores metadata.uid in a status write of a custom resource.
                body = {"metadata": {"resourceVersion": ref.resource_version}, "status": patch.status}
                await self._patch(ref, body, subresource="status")
                written.status = patch.status
            if patch.state is not None:
                body = {"metadata": {"uid": ref.uid, "annotations": {names.POD_GROUP_STATE: patch.state}}}
                await self._patch(ref, body)
        except Conflict:
            return SETTLE_SECONDS  # another client has written to the object, or created it again
        except (NotFound, Invalid) as refused:
            # A deleted object has events of its own; an invalid patch waits for the next change.
            _log.info("status not written", group=report.key.path, error=str(refused))
        written.at, written.changed_at = monotonic(), None
        return None

    def forget_group(self, key: PodGroupKey) -> None:
        """Drops the state of a group that is gone."""
        self._written.pop(key, None)

    # --- Details ---------------------------------------------------------------------------------------------------

    def _of(self, key: PodGroupKey, ref: RecordRef) -> _Written:
        written = self._written.get(key)
        if written is None or written.uid != ref.uid:
            written = self._written[key] = _Written(ref.uid)
        return written

    def _patch_for(self, report: GroupStatus, written: _Written, ref: RecordRef, fields: frozenset[str]) -> _Patch:
        text, status = podgroup_status.state_text(report), report.snapshot.pod_group_status
        state = None if text == report.snapshot.state else text
        if not ref.api or report.managers:
            return _Patch({}, state, urgent=True)
        desired = podgroup_status.desired_status(report, ref.api, fields, status, self._clock())
        changes = {key: value for key, value in desired.items() if status.get(key) != value}
        # What another client has removed is written again, but slowly.
        urgent = changes != written.status and not podgroup_status.progress_only(desired, status)
        return _Patch(changes, None if podgroup_status.CONDITIONS in fields else state, urgent=urgent)

    async def _patch(self, ref: RecordRef, body: dict[str, Any], subresource: str | None = None) -> None:
        stored = await self._client.patch(
            resource_of(ref.api),
            ref.name,
            ref.namespace,
            body=body,
            patch=PatchType.MERGE,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
            type=wire_type(ref.api),
        )
        self._observe(ref.api, stored)

    async def _status_fields(self, api: str) -> frozenset[str]:
        """The status fields of the CRD; where it may not be read, those of its API type."""
        known = self._fields.get(api)
        if known is not None:
            return known[0]
        name = f"{POD_GROUPS[api].plural}.{api}"
        try:
            found = frozenset(podgroup_status.crd_status_fields(await self._client.get(CRDS, name)))
        except RequestFailed as refused:
            _log.warning("schema of the status not known", crd=name, error=str(refused))
            found = frozenset(podgroup_status.STATUS_FIELDS[api])
        self._fields.put(api, found, REFRESH_SECONDS)
        return found
