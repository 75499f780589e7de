"""Compare-and-swap store of admission records: on the group's PodGroup, else in a ConfigMap (G3).

The write is the admission. It may be interrupted anywhere: a successor finds either the old record or the new one.
Where an answer is lost, or another client has written to the object, the object is read again.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import aclosing
from typing import Any, Final

import msgspec
import structlog

from controllers.podgroups.record_cache import ObjectPlace
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import (
    AlreadyExists,
    Conflict,
    Invalid,
    InvalidResponse,
    KubeError,
    NotFound,
    RequestFailed,
    ServerError,
    Throttled,
    Unreachable,
)
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS, Resource
from jobset_gate.podgroups import decode, wire
from jobset_gate.podgroups import record as records
from jobset_gate.podgroups.model import PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordObject, RecordRef
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.runtime.store import ObjectVersion, Store
from jobset_gate.runtime.workqueue import Requeue

RELIST_SECONDS: Final = 2.0
"""Until a failed list is repeated."""

_log = structlog.get_logger(__name__)


class OutcomeUnknown(KubeError):
    """A write has no answer, and the object cannot be read either."""


SetRecordObject = Callable[[ObjectPlace, RecordObject | None], None]
"""Gets what reads and writes of the store have returned, ahead of the informers; None: the object is gone."""

_Stored = wire.PodGroup | wire.RecordConfigMap


class RecordStore:
    """Records of all groups in a namespace; None: in all.

    `stores`: of the informers of all record objects, by API group, "" for ConfigMaps.
    """

    def __init__(
        self,
        client: Client,
        stores: Mapping[str, Store[Any, RecordObject]],
        set_record_object: SetRecordObject,
        namespace: str | None = None,
    ) -> None:
        self._client, self._stores, self._namespace = client, stores, namespace
        self._set_record_object = set_record_object

    async def write_record(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """Stores this record, if what is stored is still what the snapshot shows.

        Raises Requeue on a conflict, the client's error if the write has surely failed, else OutcomeUnknown.
        """
        ref = seen.record_ref
        if ref is None:
            await self._create(seen, record)
            return
        text = records.encode_record(msgspec.structs.replace(record, home_uid=ref.uid if ref.api else ""))
        try:
            stored = await self._client.patch(
                resource_of(ref.api),
                ref.name,
                ref.namespace,
                body=_patch(ref, text),
                patch=PatchType.MERGE,
                type=wire_type(ref.api),
            )
        except (Conflict, Invalid, NotFound, Unreachable, InvalidResponse, ServerError, Throttled) as error:
            path = seen.group.key.path
            found = await self._read_surely(path, ref)
            changed = found is None or found.metadata.resource_version != ref.resource_version
            if found is not None and found.metadata.uid == ref.uid and _record_text(found) == text:
                return  # the write has landed all the same
            if changed:
                raise Requeue(f"another client has changed the record object of group {path}") from error
            raise
        self.observe(ref.api, stored)

    async def delete_record(self, ref: RecordRef) -> None:
        """Deletes the ConfigMap of a group that is gone."""
        known = self._known_version(ref)
        try:
            await self._client.delete(
                CONFIGMAPS, ref.name, ref.namespace, uid=ref.uid, resource_version=ref.resource_version
            )
        except Conflict as changed:
            await self._read(ref)
            raise Requeue(f"the ConfigMap {ref.name} has changed") from changed
        except NotFound:
            pass
        self._observe_absence(ref, known)

    async def load_records(self) -> None:
        """Lists all records, ahead of the informers: those of a standby may lag behind the last leader's admissions.

        Retries until it succeeds: trouble of the API server is often what made this replica the leader.
        """
        for resource in map(resource_of, self._stores):
            while True:
                try:
                    await self._list(resource)
                except NotFound:
                    break  # the CRD is not installed
                except RequestFailed as error:
                    _log.warning("records not listed", kind=resource.plural, group=resource.group, error=str(error))
                    await asyncio.sleep(RELIST_SECONDS)
                else:
                    break

    def observe(self, api: str, stored: _Stored) -> None:
        """The API server has returned this object."""
        place = api, stored.metadata.namespace, stored.metadata.name
        self._set_record_object(place, self._stores[api].observe_object(stored))

    async def _list(self, resource: Resource) -> None:
        selector = f"{names.POD_GROUP_RECORD}={names.POD_GROUP_RECORD_VALUE}" if resource == CONFIGMAPS else ""
        scope, api = ListScope(resource, self._namespace, selector), resource.group
        async with aclosing(list_objects(self._client, scope, wire_type(api))) as listed:
            async for stored in listed:
                if _record_text(stored):
                    self.observe(api, stored)

    async def _create(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        key, text = seen.group.key, records.encode_record(msgspec.structs.replace(record, home_uid=""))
        if seen.group.pod_group_missing:
            raise Requeue(f"group {key.path} has no object for its record")
        body = _config_map(key, text)
        try:
            stored = await self._client.create(CONFIGMAPS, body, key.namespace, type=wire.RecordConfigMap)
        except (AlreadyExists, Unreachable, InvalidResponse, ServerError) as error:
            # Our own whose answer was lost, one from before a crash, or that of another client.
            ref = RecordRef(api="", namespace=key.namespace, name=_config_map_name(key), uid="", resource_version="")
            found: wire.RecordConfigMap | None = await self._read_surely(key.path, ref)
            if found is not None and _record_text(found) == text:
                return
            raise Requeue(f"the ConfigMap {ref.name} exists already, or was not created") from error
        self.observe("", stored)

    async def _read_surely(self, path: str, ref: RecordRef) -> Any:
        """Reads the object after a write with an unknown outcome."""
        try:
            return await self._read(ref)
        except RequestFailed as unread:
            raise OutcomeUnknown(f"the record of group {path} may or may not have been written: {unread}") from unread

    async def _read(self, ref: RecordRef) -> Any:
        """A wire.PodGroup or wire.RecordConfigMap; None if it is gone."""
        known = self._known_version(ref)
        try:
            found = await self._client.get(resource_of(ref.api), ref.name, ref.namespace, type=wire_type(ref.api))
        except NotFound:
            self._observe_absence(ref, known)
            return None
        self.observe(ref.api, found)
        return found

    def _known_version(self, ref: RecordRef) -> ObjectVersion | None:
        return self._stores[ref.api].version_of((ref.namespace, ref.name))

    def _observe_absence(self, ref: RecordRef, known: ObjectVersion | None) -> None:
        left = self._stores[ref.api].observe_absence((ref.namespace, ref.name), known)
        self._set_record_object((ref.api, ref.namespace, ref.name), left)


def resource_of(api: str) -> Resource:
    """The PodGroups of an API group, or ConfigMaps."""
    return POD_GROUPS[api] if api else CONFIGMAPS


def wire_type(api: str) -> type[Any]:
    """What they are decoded into."""
    return wire.PodGroup if api else wire.RecordConfigMap


def _record_text(stored: _Stored) -> str:
    """The stored record; "" for none."""
    if isinstance(stored, wire.RecordConfigMap):
        return (stored.data or {}).get(names.KEY_RECORD, "")
    return (stored.metadata.annotations or {}).get(names.POD_GROUP_RECORD, "")


def _config_map_name(key: PodGroupKey) -> str:
    return names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key)


def _patch(ref: RecordRef, text: str) -> dict[str, Any]:
    """UID and resourceVersion make the merge patch a compare-and-swap."""
    meta: dict[str, Any] = {"uid": ref.uid, "resourceVersion": ref.resource_version}
    if ref.api:
        return {"metadata": meta | {"annotations": {names.POD_GROUP_RECORD: text}}}
    return {"metadata": meta, "data": {names.KEY_RECORD: text}}


def _config_map(key: PodGroupKey, text: str) -> dict[str, Any]:
    return {
        "metadata": {
            "name": _config_map_name(key),
            "namespace": key.namespace,
            "labels": {names.POD_GROUP_RECORD: names.POD_GROUP_RECORD_VALUE, names.MANAGED_BY_LABEL: names.PROGRAM},
            "annotations": {names.POD_GROUP_KEY: decode.format_key(key)},
        },
        "data": {names.KEY_RECORD: text},
    }
