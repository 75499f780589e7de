"""Writes the status of a PodGroup, or an annotation on the ConfigMap of a group without one (G5).

Only fields that the installed CRD has, only what has changed, and no field of a status that another controller writes:
then the annotation alone reports the state.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from controllers.podgroups.record_store import resource_of, wire_type
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Invalid, InvalidResponse, NotFound, Unreachable
from jobset_gate.kube.resources import CRDS, POD_GROUPS
from jobset_gate.objects.caches import TTLCache
from jobset_gate.podgroups import podgroup_status
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.snapshot import RecordRef
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.flowcontrol import RateLimiter

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
    uid: str
    at: float = -math.inf
    status: dict[str, Any] = field(default_factory=dict)
    changed_at: float | None = None
    """Since when there is something to write."""


class PodGroupStatusWriter:
    """Statuses of all groups. `observe` puts the answers to its writes, by API group, into the informers' caches;
    `clock`: Unix time, for what is written; `monotonic` measures pauses.
    """

    def __init__(
        self,
        client: Client,
        limiter: RateLimiter,
        observe: Callable[[str, Any], None],
        clock: Callable[[], float],
        monotonic: Callable[[], float] = monotonic,
    ) -> None:
        self._client, self._limiter, self._observe = client, limiter, observe
        self._clock, self._monotonic = clock, monotonic
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
        text, status = podgroup_status.state_text(report), report.snapshot.pod_group_status
        state = None if text == report.snapshot.annotations.get(names.POD_GROUP_STATE) else text
        if not ref.api or report.managers:
            return _Patch({}, state, urgent=True)
        desired = podgroup_status.desired_status(report, ref.api, fields, status, self._clock())
        changes = podgroup_status.status_patch(desired, status)
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
        except (ApiError, InvalidResponse, Unreachable) as refused:
            _log.warning("schema of the status not known", crd=name, error=str(refused))
            found = frozenset(podgroup_status.STATUS_FIELDS[api])
        self._fields.put(api, found, REFRESH_SECONDS)
        return found
