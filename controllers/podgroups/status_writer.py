"""Writes what there is to say of a group on its PodGroup, or on the ConfigMap that stands in for one (G5).

Only fields that the CRD at hand has, only what has changed, and nothing at all in a status that another controller
writes: then the annotation alone says it.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import structlog

from controllers.podgroups.status_fields import StatusFields
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Conflict, Invalid, NotFound
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS, Resource
from jobset_gate.podgroups import podgroup_status
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.snapshot import RecordRef
from jobset_gate.podgroups.status import GroupStatus
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.store import is_later

PROGRESS_SECONDS: Final = 15.0
"""Seconds between two writes of which only numbers and words differ."""
SETTLE_SECONDS: Final = 1.0
"""Seconds from new words to their writing: a group that gathers or whose pods start has others a moment later."""
CONTESTED_WRITES: Final = 2
"""So often what we wrote may be changed by others before the status counts as theirs."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Desired:
    """What is to be written: of the status, and as the annotation (None: leave it)."""

    status: dict[str, Any]
    state: str | None
    is_news: bool
    """Not just other numbers."""

    def __bool__(self) -> bool:
        return bool(self.status) or self.state is not None


@dataclass(slots=True)
class _Written:
    """What was written on one object."""

    uid: str
    at: float = -math.inf
    status: dict[str, Any] = field(default_factory=dict)
    state: str | None = None
    version: str = ""
    """Of the object after our last write of its status."""
    looked: bool = True
    """What became of it since was looked at."""
    contested: int = 0
    first_wanted: float | None = None
    refused: _Desired | None = None
    """What the object does not take; it is not offered twice."""


class PodGroupStatusWriter:
    """The statuses of all groups. `clock` dates what is written; `patience` is a clock that nobody sets."""

    def __init__(
        self,
        client: Client,
        clock: Callable[[], float],
        schemas: StatusFields,
        *,
        patience: Callable[[], float] = monotonic,
    ) -> None:
        self._client, self._clock, self._schemas, self._patience = client, clock, schemas, patience
        self._said: dict[PodGroupKey, _Written] = {}

    def due_in(self, report: GroupStatus) -> float | None:
        """Seconds until there is something to write: 0 now, None not at all."""
        if report.record_ref is None:
            return None
        said, now = self._of(report.key, report.record_ref), self._patience()
        self._look(report.record_ref, said, report.snapshot.pod_group_status)
        words = self._words(report, said, report.record_ref)
        if not words or words == said.refused:
            said.first_wanted = None
            return None
        if said.first_wanted is None:
            said.first_wanted = now
        due = (
            said.first_wanted + SETTLE_SECONDS
            if words.is_news
            else max(said.first_wanted + SETTLE_SECONDS, said.at + PROGRESS_SECONDS)
        )
        return max(0.0, due - now)

    async def write_status(self, report: GroupStatus) -> float | None:
        """Writes what is due. Returns the seconds after which to come back, None if there is nothing more."""
        home = report.record_ref
        if home is None:
            return None
        if home.api:
            await self._schemas.refresh_fields(home.api)
        wait = self.due_in(report)
        if wait is None or wait > 0:
            return wait
        said = self._of(report.key, home)
        words = self._words(report, said, home)
        try:
            if words.status:
                await self._status(home, said, words.status)
            if words.state is not None:
                await self._state(home, said, words.state)
        except (NotFound, Conflict, Invalid) as refused:
            # Gone, or made anew: its own events bring us back. What is wrong with the words is not better later.
            _log.info("status not written", group=report.key.path, error=str(refused))
            said.refused = words if isinstance(refused, Invalid) else None
        said.at, said.first_wanted = self._patience(), None
        return None

    def foreign_managers(self, report: GroupStatus) -> tuple[str, ...]:
        """Who writes the status of its PodGroup instead of us; () if we do."""
        if report.record_ref is None or not report.record_ref.api:
            return ()
        known = report.managers
        if not known and self._of(report.key, report.record_ref).contested >= CONTESTED_WRITES:
            return ("another controller",)
        return known

    def forget_group(self, key: PodGroupKey) -> None:
        """The group is gone."""
        self._said.pop(key, None)

    # --- Details ---------------------------------------------------------------------------------------------------

    def _of(self, key: PodGroupKey, home: RecordRef) -> _Written:
        said = self._said.get(key)
        if said is None or said.uid != home.uid:
            said = self._said[key] = _Written(home.uid)
        return said

    def _words(self, report: GroupStatus, said: _Written, home: RecordRef) -> _Desired:
        seen = report.snapshot
        stands = seen.annotations.get(names.POD_GROUP_STATE) if said.state is None else said.state
        state = podgroup_status.state_text(report)
        other = None if state == stands else state
        if not home.api or self.foreign_managers(report):
            return _Desired({}, other, is_news=True)
        has, status = self._schemas.fields_of(home.api), seen.pod_group_status
        if is_later(said.version, home.resource_version):
            status = {**status, **said.status}  # the watch has not shown it yet
        wanted = podgroup_status.desired_status(report, home.api, has, status, self._clock())
        news = podgroup_status.status_patch(wanted, status)
        # Somebody took away what was written: it is told again, but slowly.
        fresh = news != said.status and not podgroup_status.progress_only(wanted, status)
        return _Desired(news, None if podgroup_status.CONDITIONS in has else other, is_news=fresh)

    def _look(self, home: RecordRef, said: _Written, status: Mapping[str, Any]) -> None:
        """Whether somebody has put other values where ours were."""
        if said.looked or not is_later(home.resource_version, said.version):
            return
        if any(status.get(key) != value for key, value in said.status.items() if value is not None):
            said.contested += 1
        said.looked = True

    async def _status(self, home: RecordRef, said: _Written, status: dict[str, Any]) -> None:
        ahead = said.version and is_later(said.version, home.resource_version)
        version = said.version if ahead else home.resource_version
        try:
            answer = await self._status_at(version, home, status)
        except Conflict:
            # Any write to the PodGroup since, or another PodGroup of this name.
            live = (await self._client.get(POD_GROUPS[home.api], home.name, home.namespace))["metadata"]
            if live["uid"] != home.uid:
                raise
            answer = await self._status_at(live["resourceVersion"], home, status)
        said.status, said.looked = status, False
        said.version = str(answer.get("metadata", {}).get("resourceVersion", ""))

    async def _status_at(self, version: str, home: RecordRef, status: dict[str, Any]) -> dict[str, Any]:
        """In a write of a custom resource's status the API server ignores metadata.uid, and honours resourceVersion."""
        body = {"metadata": {"resourceVersion": version}, "status": status}
        return await self._patch(POD_GROUPS[home.api], home, body, subresource="status")

    async def _state(self, home: RecordRef, said: _Written, state: str) -> None:
        resource = POD_GROUPS[home.api] if home.api else CONFIGMAPS
        body = {"metadata": {"uid": home.uid, "annotations": {names.POD_GROUP_STATE: state}}}
        await self._patch(resource, home, body)
        said.state = state

    async def _patch(
        self, resource: Resource, home: RecordRef, body: dict[str, Any], subresource: str | None = None
    ) -> dict[str, Any]:
        return await self._client.patch(
            resource,
            home.name,
            home.namespace,
            body=body,
            patch=PatchType.MERGE,
            subresource=subresource,
            field_manager=names.FIELD_MANAGER,
        )
