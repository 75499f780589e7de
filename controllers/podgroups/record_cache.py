"""Cache of the PodGroups and ConfigMaps that store admission records, overlaid with the writes of this process.

The answer to a write is known here before the informer delivers it, and no older event takes it back.
"""

from collections.abc import Collection
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.podgroups import decode
from jobset_gate.podgroups import record as records
from jobset_gate.podgroups.model import POD_GROUP_APIS, Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import RecordObject, RecordRef
from jobset_gate.runtime.store import is_later

ObjectPlace = tuple[str, str, str]
"""(API group, namespace, name); the API group of a ConfigMap is ""."""

_BY_RIGHT: Final = (Flavor.KEP_24, Flavor.SCHEDULER_PLUGINS, Flavor.KOORDINATOR)
"""A PodGroup that no pod names belongs to the first of these flavors that reads its API group."""


class RecordCache:
    """All record objects, and the records that decide on each group, wherever they are stored."""

    def __init__(self, flavors: Collection[Flavor], *, across_namespaces: bool) -> None:
        """`flavors`: those that are on. `across_namespaces`: gangs of several namespaces may be admitted together."""
        self._across = across_namespaces
        self._readers = {
            api: tuple(flavor for flavor in _BY_RIGHT if flavor in flavors and api in POD_GROUP_APIS[flavor])
            for api in {api for apis in POD_GROUP_APIS.values() for api in apis}
        }
        self._delivered: dict[ObjectPlace, RecordObject] = {}
        self._overlay: dict[ObjectPlace, RecordObject] = {}
        self._deciding: dict[PodGroupKey, dict[ObjectPlace, AdmissionRecord]] = {}

    # --- Changes: each returns the groups that may be affected -------------------------------------------------------

    def put_object(self, new: RecordObject) -> set[PodGroupKey]:
        """The informer has delivered an object."""
        place = _place(new.ref)
        before, ahead = self.object_at(place), self._overlay.get(place)
        self._delivered[place] = new
        if ahead is not None and not is_later(ahead.ref.resource_version, new.ref.resource_version):
            del self._overlay[place]
        return self._changed(place, before)

    def remove_object(self, old: RecordObject) -> set[PodGroupKey]:
        """The informer has delivered a deletion."""
        place = _place(old.ref)
        before, ahead = self.object_at(place), self._overlay.get(place)
        self._delivered.pop(place, None)
        if ahead is not None and ahead.ref.uid == old.ref.uid:
            del self._overlay[place]
        return self._changed(place, before)

    def observe_write(self, key: PodGroupKey, ref: RecordRef, record: AdmissionRecord | None) -> set[PodGroupKey]:
        """The API server has returned this version of a group's record object, with this record."""
        place = _place(ref)
        before = self.object_at(place)
        if before is not None and not is_later(ref.resource_version, before.ref.resource_version):
            return set()
        self._overlay[place] = RecordObject(
            ref=ref, key=None if ref.api else key, record=decode.if_stored_here(record, ref)
        )
        return self._changed(place, before)

    def observe_gone(self, ref: RecordRef) -> set[PodGroupKey]:
        """The API server has answered that the object is gone."""
        place = _place(ref)
        before = self.object_at(place)
        for known in (self._delivered, self._overlay):
            if place in known and known[place].ref.uid == ref.uid:
                del known[place]
        return self._changed(place, before)

    # --- Queries -----------------------------------------------------------------------------------------------------

    def object_at(self, place: ObjectPlace) -> RecordObject | None:
        """The newest known version of an object."""
        stored, ahead = self._delivered.get(place), self._overlay.get(place)
        if ahead is None:
            return stored
        if stored is None or stored.ref.uid != ahead.ref.uid:
            # Of a PodGroup that the informer has not delivered, nothing but the record is known.
            return stored if ahead.ref.api else ahead
        return msgspec.structs.replace(stored, ref=ahead.ref, record=ahead.record, problem=None)

    def pod_groups(self, key: PodGroupKey) -> list[RecordObject]:
        """PodGroups of a group's name in the API groups that its flavor reads, the winning one first."""
        found = (self.object_at((api, key.namespace, key.name)) for api in POD_GROUP_APIS[key.design])
        return [it for it in found if it is not None]

    def objects_of(self, key: PodGroupKey) -> list[RecordObject]:
        """All objects that may store a group's own record: its PodGroups and its ConfigMap."""
        config_map = self.object_at(_config_map_place(key))
        return [*self.pod_groups(key), *([] if config_map is None else [config_map])]

    def object_to_write(self, key: PodGroupKey, pod_group: RecordObject | None) -> RecordObject | None:
        """Where the next record is written: the PodGroup, unless it stores that of another flavor's group."""
        if pod_group is None or self._is_taken(key, pod_group):
            return self.object_at(_config_map_place(key))
        return pod_group

    def has_foreign_records(self, key: PodGroupKey) -> bool:
        """Whether a record in another namespace decides on the group; it counts only if the group names those gangs."""
        return self._across and any(namespace != key.namespace for _, namespace, _ in self._deciding.get(key, ()))

    def record_of(self, key: PodGroupKey, gangs: Collection[str] = ()) -> AdmissionRecord | None:
        """The valid record among those on the group's own objects and on that of a GangGroup's first gang.

        `gangs`: paths of the gangs that the group itself names.
        """
        stored = [it.record for it in self.objects_of(key) if it.record is not None]
        own = max(stored, key=lambda it: mine.generation if (mine := records.record_for(it, key)) else 0, default=None)
        deciding = self._deciding.get(key, {})
        found = records.latest_record(
            key, own, [it for place, it in deciding.items() if self._may_decide(key, place, it, gangs)]
        )
        # A record that a user writes must not evict the pods of another namespace.
        return found if found is None or self._across else records.record_within(found, key.namespace)

    def flavors_reading(self, api: str) -> tuple[Flavor, ...]:
        """Flavors that read PodGroups of an API group; an unused PodGroup belongs to the first."""
        return self._readers[api]

    # --- Details -----------------------------------------------------------------------------------------------------

    def _changed(self, place: ObjectPlace, before: RecordObject | None) -> set[PodGroupKey]:
        now = self.object_at(place)
        if before is not None and now is not None and _same(before, now):
            return set()
        concerned = self._keys_of(place, before) | self._keys_of(place, now)
        for key in self._decided_at(place, before):
            listed = self._deciding[key]
            del listed[place]
            if not listed:
                del self._deciding[key]
        for key in self._decided_at(place, now):
            assert now is not None and now.record is not None  # noqa: PT018, S101 - or it would decide on nothing
            self._deciding.setdefault(key, {})[place] = now.record
        return concerned

    def _keys_of(self, place: ObjectPlace, it: RecordObject | None) -> set[PodGroupKey]:
        return set() if it is None else {*self._owners(place, it), *self._decided_at(place, it)}

    def _owners(self, place: ObjectPlace, it: RecordObject) -> list[PodGroupKey]:
        """The groups that an object may belong to."""
        if it.key is not None:
            return [it.key]
        api, namespace, name = place
        return [PodGroupKey(design=flavor, namespace=namespace, name=name) for flavor in self._readers.get(api, ())]

    def _is_taken(self, key: PodGroupKey, pod_group: RecordObject) -> bool:
        decided = [] if pod_group.record is None else [key for key, _ in pod_group.record.gangs]
        designs = self.flavors_reading(pod_group.ref.api)
        return key not in decided and any(it.path == key.path and it.design in designs for it in decided)

    def _may_decide(
        self, key: PodGroupKey, place: ObjectPlace, record: AdmissionRecord, gangs: Collection[str]
    ) -> bool:
        """A record decides in another namespace only if the settings allow GangGroups across namespaces, and the group
        there names the gang whose object stores the record.
        """
        return place[1] == key.namespace or (self._across and record.gangs[0][0].path in gangs)

    def _decided_at(self, place: ObjectPlace, it: RecordObject | None) -> set[PodGroupKey]:
        """The groups that a record decides on. Only the object of the first gang decides; the others hold copies."""
        if it is None or it.record is None:
            return set()
        gangs = [key for key, _ in it.record.gangs]
        return set(gangs) if gangs and gangs[0] in self._owners(place, it) else set()


def _place(ref: RecordRef) -> ObjectPlace:
    return ref.api, ref.namespace, ref.name


def _config_map_place(key: PodGroupKey) -> ObjectPlace:
    return "", key.namespace, names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key)


def _same(one: RecordObject, other: RecordObject) -> bool:
    """Whether only the version differs; records are compared as decoded, not as text."""
    if one.ref.uid != other.ref.uid or _annotations(one) != _annotations(other):
        return False
    return msgspec.structs.replace(one, ref=other.ref, annotations=other.annotations) == other


def _annotations(it: RecordObject) -> dict[str, str]:
    return {name: value for name, value in it.annotations.items() if name != names.POD_GROUP_RECORD}
