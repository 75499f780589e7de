"""Writes the status of a PodGroup, or an annotation on the ConfigMap of a group without one (G5).

Only fields that the installed CRD has, only what has changed, and no field of a status that another controller writes:
then the annotation alone reports the state.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Invalid, InvalidResponse, NotFound, Unreachable
from jobset_gate.kube.resources import CONFIGMAPS, CRDS, POD_GROUPS, Resource
from jobset_gate.objects.caches import TTLCache
from jobset_gate.podgroups import podgroup_status
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.snapshot import RecordRef
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.flowcontrol import RateLimiter
from jobset_gate.runtime.store import is_later

PROGRESS_SECONDS: Final = 15.0
"""Between two writes that differ in counts and messages only."""

SETTLE_SECONDS: Final = 1.0
"""From a change until it is written: a group that gathers, or whose pods start, changes again a moment later."""

REFRESH_SECONDS: Final = 300.0
"""Between two reads of a CRD's schema."""

_log = structlog.get_logger(__name__)


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
    """What was written to one object."""

    uid: str
    at: float = -math.inf
    status: dict[str, Any] = field(default_factory=dict)
    state: str | None = None
    version: str = ""
    """Of the object, after the last write of its status."""
    changed_at: float | None = None
    """Since when there is something to write."""


class PodGroupStatusWriter:
    """Statuses of all groups. `clock`: Unix time, for what is written; `monotonic` measures pauses."""

    def __init__(
        self,
        client: Client,
        limiter: RateLimiter,
        clock: Callable[[], float],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        self._client, self._limiter, self._clock, self._monotonic = client, limiter, clock, monotonic
        self._fields: TTLCache[str, frozenset[str]] = TTLCache(len(POD_GROUPS), monotonic)
        """By API group."""
        self._written: dict[PodGroupKey, _Written] = {}

    async def write_status(self, report: GroupStatus) -> float | None:
        """Writes what is due. Returns the seconds until the next write, None: there is nothing more to write."""
        ref, now = report.record_ref, self._monotonic()
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
                await self._write_fields(ref, written, patch.status)
            if patch.state is not None:
                await self._write_state(ref, written, patch.state)
        except (NotFound, Conflict, Invalid) as refused:
            # A deleted or recreated object has events of its own; an invalid patch waits for the next change.
            _log.info("status not written", group=report.key.path, error=str(refused))
        written.at, written.changed_at = self._monotonic(), None
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
        seen = report.snapshot
        stored = seen.annotations.get(names.POD_GROUP_STATE) if written.state is None else written.state
        text = podgroup_status.state_text(report)
        state = None if text == stored else text
        if not ref.api or report.managers:
            return _Patch({}, state, urgent=True)
        status = seen.pod_group_status
        if is_later(written.version, ref.resource_version):
            status = {**status, **written.status}  # the informer has not delivered it yet
        desired = podgroup_status.desired_status(report, ref.api, fields, status, self._clock())
        changes = podgroup_status.status_patch(desired, status)
        # What another client has removed is written again, but slowly.
        urgent = changes != written.status and not podgroup_status.progress_only(desired, status)
        return _Patch(changes, None if podgroup_status.CONDITIONS in fields else state, urgent=urgent)

    async def _write_fields(self, ref: RecordRef, written: _Written, status: dict[str, Any]) -> None:
        ahead = written.version and is_later(written.version, ref.resource_version)
        try:
            answer = await self._patch_status(written.version if ahead else ref.resource_version, ref, status)
        except Conflict:
            # Another write to the PodGroup, or another PodGroup of this name.
            live = (await self._client.get(POD_GROUPS[ref.api], ref.name, ref.namespace))["metadata"]
            if live["uid"] != ref.uid:
                raise
            answer = await self._patch_status(live["resourceVersion"], ref, status)
        written.status = status
        written.version = str(answer.get("metadata", {}).get("resourceVersion", ""))

    async def _patch_status(self, version: str, ref: RecordRef, status: dict[str, Any]) -> dict[str, Any]:
        """The API server ignores metadata.uid in a status write of a custom resource, and honours resourceVersion."""
        body = {"metadata": {"resourceVersion": version}, "status": status}
        return await self._patch(POD_GROUPS[ref.api], ref, body, subresource="status")

    async def _write_state(self, ref: RecordRef, written: _Written, state: str) -> None:
        body = {"metadata": {"uid": ref.uid, "annotations": {names.POD_GROUP_STATE: state}}}
        await self._patch(POD_GROUPS[ref.api] if ref.api else CONFIGMAPS, ref, body)
        written.state = state

    async def _patch(
        self, resource: Resource, ref: RecordRef, body: dict[str, Any], subresource: str | None = None
    ) -> dict[str, Any]:
        return await self._client.patch(
            resource,
            ref.name,
            ref.namespace,
            body=body,
            patch=PatchType.MERGE,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
        )

    async def _status_fields(self, api: str) -> frozenset[str]:
        """The status fields of the CRD; where it may not be read, those of its API type."""
        known = self._fields.get(api)
        if known is not None:
            return known[0]
        name = f"{POD_GROUPS[api].plural}.{api}"
        try:
            found = frozenset(podgroup_status.crd_status_fields(await self._client.get(CRDS, name)))
        except (ApiError, InvalidResponse, Unreachable) as refused:
            _log.warning("schema of the status not known", crd=name, error=str(refused))
            found = frozenset(podgroup_status.STATUS_FIELDS[api])
        self._fields.put(api, found, REFRESH_SECONDS)
        return found
