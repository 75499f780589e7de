"""Native PodGroups, for the scheduler's own gang scheduling: groups.native On (G6).

Pods name a native PodGroup from CREATE on. It is created last, when the gates are removed, so that the scheduler sees
the whole group at once; it is deleted when the group is evicted, and created again for the next generation.
"""

import asyncio
from typing import Any, Final

import structlog

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import AlreadyExists, Conflict, Invalid, KubeError, NotFound
from jobset_gate.kube.resources import Resource, native_pod_groups
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef
from jobset_gate.runtime.workqueue import Requeue

VERSIONS: Final = ("v1beta1", "v1alpha3", "v1alpha2")
"""Those of scheduling.k8s.io whose PodGroups have `spec.schedulingPolicy.gang.minCount`, the newer first: of Kubernetes
1.37 the first two, of 1.36 the last. API servers of before 1.22 had a v1beta1 without PodGroups.
"""
PROTECTION: Final = "scheduling.k8s.io/podgroup-protection"
"""Finalizer on every native PodGroup, removed when no pod names it."""
MOST_NAMED: Final = 3
"""In a message."""


def native_name(label: str) -> str:
    """Name of a group's native PodGroup, which its pods have in spec.schedulingGroup."""
    return names.NATIVE_PREFIX + label


def native_pod_group(seen: GroupSnapshot, record: AdmissionRecord) -> dict[str, Any]:
    """The native PodGroup of this generation, owned by the object that stores the record."""
    meta: dict[str, Any] = {
        "name": native_name(seen.label),
        "namespace": seen.group.key.namespace,
        "labels": {names.MANAGED_BY_LABEL: names.PROGRAM, names.POD_GROUP_LABEL: seen.label},
        "annotations": {names.NATIVE_GENERATION: str(seen.generation)},
    }
    if seen.record_ref is not None and seen.record_ref.namespace == seen.group.key.namespace:
        meta["ownerReferences"] = [_owner(seen.record_ref)]
    return {"metadata": meta, "spec": {"schedulingPolicy": {"gang": {"minCount": max(1, record.minimum)}}}}


def is_current(stored: dict[str, Any], seen: GroupSnapshot) -> bool:
    """Whether the stored native PodGroup is of this generation, and its owner the object that stores the record."""
    meta = stored.get("metadata", {})
    notes, owners = meta.get("annotations") or {}, [it.get("uid") for it in meta.get("ownerReferences") or ()]
    stays = not owners or seen.record_ref is None or seen.record_ref.uid in owners
    return stays and bool(notes.get(names.NATIVE_GENERATION) == str(seen.generation))


def native_hold(seen: GroupSnapshot, version: str | None) -> GroupReason | None:
    """Why a gathered group cannot be handed over. `version`: the supported one ("": none; None: not known)."""
    lacking = sorted(one.name for one in generation.gated_members(seen) if one.native != native_name(seen.label))
    if version is None:
        why = "whether the API server has PodGroups of its own is not known yet"
    elif not version:
        wanted = ", ".join(VERSIONS)
        why = f"groups.native is On, and the API server serves PodGroups of {names.NATIVE_GROUP} in none of {wanted}"
    elif seen.group.gangs:
        why = "groups.native is On, and the scheduler's own gangs know no GangGroups"
    elif lacking:
        why = (
            f"groups.native is On, and {truncate_list(lacking, MOST_NAMED)} came without spec.schedulingGroup: made "
            "before it was switched on, or the API server's feature gate GenericWorkload is off"
        )
    else:
        return None
    return GroupReason(reason=names.REASON_NATIVE_UNAVAILABLE, message=why)


def _owner(home: RecordRef) -> dict[str, str]:
    kind, api = ("ConfigMap", "v1") if not home.api else (names.POD_GROUP, f"{home.api}/{names.POD_GROUP_VERSION}")
    return {"apiVersion": api, "kind": kind, "name": home.name, "uid": home.uid}


DISCOVERY_SECONDS: Final = 30.0
"""Between two discoveries of what the API server serves: an upgrade may bring another version."""

_log = structlog.get_logger(__name__)


class NativePodGroups:
    """`client` refuses to write where this process does not lead."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._version: str | None = None

    async def run(self) -> None:
        """Repeats the discovery until cancelled."""
        while True:
            await self.refresh_version()
            await asyncio.sleep(DISCOVERY_SECONDS)

    async def refresh_version(self) -> None:
        """Discovers the newest version that the API server serves."""
        try:
            served = await self._client.first_served(map(native_pod_groups, VERSIONS))
        except KubeError as error:
            _log.warning("not known whether native PodGroups are served", error=str(error))
            return
        found = served.version if served else ""
        if found != self._version:
            _log.info("native PodGroups", version=found or "not served")
            self._version = found

    def why_held(self, seen: GroupSnapshot) -> GroupReason | None:
        """Why a gathered group must not be admitted."""
        return native_hold(seen, self._version)

    async def hand_over_group(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """Creates the native PodGroup, once all gates are removed; one of an earlier generation is deleted first."""
        stored = await self._stored(seen)
        if stored is not None and not is_current(stored, seen):
            await self._delete(seen, stored)
            raise Requeue(f"the native PodGroup of an earlier generation of {seen.group.key.path} goes first")
        if stored is None:
            await self._create(seen, record)

    async def delete_pod_group(self, seen: GroupSnapshot) -> None:
        """Deletes the native PodGroup, so that the scheduler binds no more of its pods."""
        stored = await self._stored(seen)
        if stored is not None:
            await self._delete(seen, stored)

    @property
    def _resource(self) -> Resource:
        return native_pod_groups(self._version or VERSIONS[0])

    async def _stored(self, seen: GroupSnapshot) -> dict[str, Any] | None:
        try:
            return await self._client.get(self._resource, native_name(seen.label), seen.group.key.namespace)
        except NotFound:
            return None

    async def _create(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        try:
            await self._client.create(self._resource, native_pod_group(seen, record))
        except AlreadyExists as lost:
            raise Requeue(str(lost)) from lost
        _log.info("group handed over", group=seen.group.key.path, generation=seen.generation, minimum=record.minimum)

    async def _delete(self, seen: GroupSnapshot, stored: dict[str, Any]) -> None:
        """Removes the finalizer, too: it protects a PodGroup that pods name, and those of the next generation do."""
        meta, namespace = stored["metadata"], seen.group.key.namespace
        name, uid = native_name(seen.label), meta["uid"]
        others = [one for one in meta.get("finalizers") or () if one != PROTECTION]
        body = {"metadata": {"uid": uid, "finalizers": others}}
        try:
            await self._client.delete(self._resource, name, namespace, uid=uid)
            await self._client.patch(self._resource, name, namespace, body=body, patch=PatchType.MERGE)
        except (NotFound, Conflict, Invalid):
            return  # gone, or recreated
