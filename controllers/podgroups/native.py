"""Native PodGroups, for the scheduler's own gang scheduling: groups.native On (G6).

Pods name a native PodGroup from CREATE on. It is created last, when the gates are removed, so that the scheduler sees
the whole group at once; it is deleted when the group is evicted, and created again for the next generation.
"""

import asyncio
from typing import Any, Final

import structlog

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound
from jobset_gate.kube.resources import Resource, native_pod_groups
from jobset_gate.podgroups import native
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.runtime.workqueue import Requeue

DISCOVERY_SECONDS: Final = 30.0
"""Between two discoveries of what the API server serves: an upgrade may bring another version."""

_log = structlog.get_logger(__name__)


class NativePodGroups:
    """`client` refuses to write where this process does not lead."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._version: str | None = None
        self._created: dict[PodGroupKey, tuple[str, int, str]] = {}
        """Label, generation and UID of the record object for which this process has created the PodGroup."""

    async def run(self) -> None:
        """Repeats the discovery until cancelled."""
        while True:
            await self.refresh_version()
            await asyncio.sleep(DISCOVERY_SECONDS)

    async def refresh_version(self) -> None:
        """Discovers the newest version that the API server serves."""
        try:
            served = await self._client.first_served(map(native_pod_groups, native.VERSIONS))
        except KubeError as error:
            _log.warning("not known whether native PodGroups are served", error=str(error))
            return
        found = served.version if served else ""
        if found != self._version:
            _log.info("native PodGroups", version=found or "not served")
            self._version, self._created = found, {}

    def why_held(self, seen: GroupSnapshot) -> GroupReason | None:
        """Why a gathered group must not be admitted."""
        return native.native_hold(seen, self._version)

    async def hand_over_group(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """Creates the native PodGroup, once all gates are removed; one of an earlier generation is deleted first."""
        # A recreated PodGroup starts with generation 1 again, and the native one of the old is deleted with its owner.
        done = (seen.label, seen.generation, "" if seen.record_ref is None else seen.record_ref.uid)
        if self._created.get(seen.group.key) == done:
            return
        stored = await self._stored(seen)
        if stored is not None and not native.is_current(stored, seen):
            await self._delete(seen, stored)
            raise Requeue(f"the native PodGroup of an earlier generation of {seen.group.key.path} goes first")
        if stored is None:
            await self._create(seen, record)
        self._created[seen.group.key] = done

    async def delete_pod_group(self, seen: GroupSnapshot) -> None:
        """Deletes the native PodGroup, so that the scheduler binds no more of its pods."""
        stored = await self._stored(seen)
        if stored is not None:
            await self._delete(seen, stored)
        self._created.pop(seen.group.key, None)

    def forget_group(self, key: PodGroupKey) -> None:
        """The group is gone; its native PodGroup is deleted with its owner."""
        self._created.pop(key, None)

    @property
    def _resource(self) -> Resource:
        return native_pod_groups(self._version or native.VERSIONS[0])

    async def _stored(self, seen: GroupSnapshot) -> dict[str, Any] | None:
        try:
            return await self._client.get(self._resource, native.native_name(seen.label), seen.group.key.namespace)
        except NotFound:
            return None

    async def _create(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        try:
            await self._client.create(self._resource, native.native_pod_group(seen, record))
        except AlreadyExists as lost:
            raise Requeue(str(lost)) from lost
        _log.info("group handed over", group=seen.group.key.path, generation=seen.generation, minimum=record.minimum)

    async def _delete(self, seen: GroupSnapshot, stored: dict[str, Any]) -> None:
        """Removes the finalizer, too: it protects a PodGroup that pods name, and those of the next generation do."""
        meta, namespace = stored["metadata"], seen.group.key.namespace
        name, uid = native.native_name(seen.label), meta["uid"]
        others = [one for one in meta.get("finalizers") or () if one != native.PROTECTION]
        body = {"metadata": {"uid": uid, "finalizers": others}}
        try:
            await self._client.delete(self._resource, name, namespace, uid=uid)
            await self._client.patch(self._resource, name, namespace, body=body, patch=PatchType.MERGE)
        except (NotFound, Conflict, Invalid):
            return  # gone, or recreated
