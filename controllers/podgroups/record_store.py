"""Keeps the record of each group: on its PodGroup, else in a ConfigMap, changed by compare-and-swap only (G3).

The write is the decision. Everything here may be interrupted anywhere: a successor finds either the old record or the
new one. Where an answer is lost, or somebody else has written to the object meanwhile, the API is asked what stands.
"""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Final, Protocol

import msgspec
import structlog

from controllers.podgroups import record_object
from controllers.podgroups.record_object import RecordObject
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    Invalid,
    InvalidResponse,
    KubeError,
    NotFound,
    NotLeader,
    ServerError,
    Throttled,
    Unreachable,
)
from jobset_gate.kube.resources import CONFIGMAPS, POD_GROUPS, Resource
from jobset_gate.podgroups import record as records
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import GroupSnapshot, RecordRef
from jobset_gate.runtime.paging import ListScope, list_objects
from jobset_gate.runtime.workqueue import Requeue

RELIST_SECONDS: Final = 2.0
"""Seconds until a list that has failed is begun anew."""

MAX_WRITE_ATTEMPTS: Final = 5
"""At one write, where all that others have changed is something else on the object: a status, a label."""

_log = structlog.get_logger(__name__)


class OutcomeUnknown(KubeError):
    """Nobody knows whether a write has landed: its answer is missing, and what stands could not be read either."""

    def __init__(self, key: PodGroupKey, home: RecordRef, why: object) -> None:
        super().__init__(f"the record of group {key.path} may or may not have been written: {why}")
        self.key, self.home = key, home


class RecordObserver(Protocol):
    """Who is told what our reads and writes show, ahead of the watch."""

    def record_observed(self, key: PodGroupKey, home: RecordRef, record: AdmissionRecord | None) -> None:
        """The group's home is in this version by now, with this record on it."""

    def record_object_gone(self, key: PodGroupKey, home: RecordRef) -> None:
        """This home is gone."""


class RecordStore:
    """The homes of all groups."""

    def __init__(self, client: Client, index: RecordObserver, namespace: str | None = None) -> None:
        """`namespace`: the only one in which groups are kept; None: all."""
        self._client, self._index, self._namespace = client, index, namespace

    async def write_record(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        """Makes this the record of the group, if what is there is still what was seen.

        Raises LookAgain where somebody else was faster, what a failing write raises that has surely not landed, and
        InDoubt where nobody knows.
        """
        if seen.record_ref is None:
            await self._create(seen, record)
            return
        home = seen.record_ref
        text = records.encode_record(msgspec.structs.replace(record, home_uid=home.uid if home.api else ""))
        for _ in range(MAX_WRITE_ATTEMPTS):
            try:
                stored = await self._client.patch(
                    record_object.resource_of(home),
                    home.name,
                    home.namespace,
                    body=record_object.record_patch(home, text),
                    patch=PatchType.MERGE,
                    type=RecordObject,
                )
            except (Conflict, Invalid, NotFound, Unreachable, InvalidResponse, ServerError, Throttled) as error:
                # It may have landed all the same, and it may be another field that has changed.
                again = await self._again(seen, home, text, error)
                if again is None:
                    return
                home = again
                continue
            self._saw(seen.group.key, home.api, stored)
            return
        raise Requeue(f"the record of group {seen.group.key.path} does not hold still")

    async def reread_record(self, doubt: OutcomeUnknown) -> None:
        """Reads what stands by now, and tells the index."""
        await self._look(doubt.key, doubt.home)

    async def delete_record(self, key: PodGroupKey, home: RecordRef) -> None:
        """Deletes the ConfigMap of a group that is gone."""
        try:
            await self._client.delete(
                CONFIGMAPS, home.name, home.namespace, uid=home.uid, resource_version=home.resource_version
            )
        except Conflict as changed:
            await self._look(key, home)
            raise Requeue(f"the ConfigMap {home.name} was changed meanwhile") from changed
        except NotFound:
            pass
        self._index.record_object_gone(key, home)

    async def load_records(self, apis: Iterable[str]) -> None:
        """Reads all records as they stand now, ahead of the watches.

        Whoever begins to lead may know less than the last leader has decided: a standby's watches lag. It is often the
        trouble of an API server that makes another lead, so this is tried until it succeeds.
        """
        for resource in (CONFIGMAPS, *(POD_GROUPS[api] for api in apis)):
            while True:
                try:
                    await self._read(resource)
                except NotFound:
                    break  # that kind is not installed
                except (ApiError, InvalidResponse, Unreachable) as error:
                    _log.warning("records not read", kind=resource.plural, group=resource.group, error=str(error))
                    await asyncio.sleep(RELIST_SECONDS)
                else:
                    break

    async def _read(self, resource: Resource) -> None:
        selector = f"{names.POD_GROUP_RECORD}={names.POD_GROUP_RECORD_VALUE}" if resource == CONFIGMAPS else ""
        async with aclosing(
            list_objects(self._client, ListScope(resource, self._namespace, selector), RecordObject)
        ) as listed:
            async for stored in listed:
                self._learn(resource.group, stored)

    def _learn(self, api: str, stored: RecordObject) -> None:
        home = record_object.ref_of(api, stored)
        record = record_object.parsed_record(record_object.record_text(home, stored))
        for key, _ in () if record is None else record.gangs:
            if (key.namespace, key.name if api else names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key)) == (
                home.namespace,
                home.name,
            ):
                self._index.record_observed(key, home, record)

    async def _create(self, seen: GroupSnapshot, record: AdmissionRecord) -> None:
        key, text = seen.group.key, records.encode_record(msgspec.structs.replace(record, home_uid=""))
        if seen.group.pod_group_missing:
            raise Requeue(f"group {key.path} has nothing to be recorded on")
        name = names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key)
        home = RecordRef(api="", namespace=key.namespace, name=name, uid="", resource_version="")
        try:
            stored = await self._client.create(
                CONFIGMAPS, record_object.record_config_map(key, name, text), key.namespace, type=RecordObject
            )
        except (AlreadyExists, Unreachable, InvalidResponse, ServerError) as error:
            # Ours whose answer was lost, from before a crash, or that of the winner of a race: the API knows.
            found = await self._surely(key, home)
            if found is None or record_object.record_text(home, found) != text:
                raise Requeue(f"the ConfigMap {name} was there already, or was not made") from error
            return
        self._saw(key, "", stored)

    async def _again(self, seen: GroupSnapshot, home: RecordRef, text: str, error: Exception) -> RecordRef | None:
        """The home at which the write is to be tried again; None: it has landed."""
        key = seen.group.key
        found = await self._surely(key, home)
        if found is None or found.metadata.uid != home.uid:
            raise Requeue(f"what group {key.path} is recorded on is gone") from error
        stands = record_object.record_text(home, found)
        if stands == text:
            return None
        if (stands and record_object.parsed_record(stands) is None) or record_object.record_as_read_by(
            stands, key
        ) != seen.record:
            raise Requeue(f"the record of group {key.path} was changed by somebody else") from error
        if not isinstance(error, Conflict | NotFound):
            # It has not landed, and the API server is in trouble, or the object takes no record: not at once again.
            raise error
        _log.debug("record written again", group=key.path, why=str(error))
        return record_object.ref_of(home.api, found)

    async def _surely(self, key: PodGroupKey, home: RecordRef) -> RecordObject | None:
        """The same after a write of which it is not known whether it has landed."""
        try:
            return await self._look(key, home)
        except NotLeader:
            raise
        except KubeError as unread:
            raise OutcomeUnknown(key, home, unread) from unread

    async def _look(self, key: PodGroupKey, home: RecordRef) -> RecordObject | None:
        """The home as it stands in the API now."""
        try:
            found = await self._client.get(
                record_object.resource_of(home), home.name, home.namespace, type=RecordObject
            )
        except NotFound:
            self._index.record_object_gone(key, home)
            return None
        self._saw(key, home.api, found)
        return found

    def _saw(self, key: PodGroupKey, api: str, stored: RecordObject) -> None:
        home = record_object.ref_of(api, stored)
        text, record = (
            record_object.record_text(home, stored),
            record_object.parsed_record(record_object.record_text(home, stored)),
        )
        if record is not None or not text:  # else the watch tells what is wrong with it
            self._index.record_observed(key, home, record)
