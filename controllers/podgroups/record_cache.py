"""Index of the PodGroups and ConfigMaps that store admission records: which record decides on which group (G3)."""

from collections.abc import Collection
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.podgroups import record as records
from jobset_gate.podgroups.model import POD_GROUP_APIS, Flavor, PodGroupKey, group_label
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import RecordObject

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
        self._objects: dict[ObjectPlace, RecordObject] = {}
        self._deciding: dict[PodGroupKey, dict[ObjectPlace, AdmissionRecord]] = {}

    def set_object(self, place: ObjectPlace, new: RecordObject | None) -> set[PodGroupKey]:
        """Sets or removes an object. Returns the groups that may be affected."""
        before = self._objects.pop(place, None)
        if new is not None:
            self._objects[place] = new
        if before is not None and new is not None and _same(before, new):
            return set()
        concerned = self._keys_of(place, before) | self._keys_of(place, new)
        for key in self._decided_at(place, before):
            listed = self._deciding[key]
            del listed[place]
            if not listed:
                del self._deciding[key]
        for key in self._decided_at(place, new):
            assert new is not None and new.record is not None  # noqa: PT018, S101 - or it would decide on nothing
            self._deciding.setdefault(key, {})[place] = new.record
        return concerned

    # --- Queries -----------------------------------------------------------------------------------------------------

    def pod_groups(self, key: PodGroupKey) -> list[RecordObject]:
        """PodGroups of a group's name in the API groups that its flavor reads, the winning one first."""
        found = (self._objects.get((api, key.namespace, key.name)) for api in POD_GROUP_APIS[key.flavor])
        return [it for it in found if it is not None]

    def objects_of(self, key: PodGroupKey) -> list[RecordObject]:
        """All objects that may store a group's own record: its PodGroups and its ConfigMap."""
        config_map = self._objects.get(_config_map_place(key))
        return [*self.pod_groups(key), *([] if config_map is None else [config_map])]

    def object_to_write(self, key: PodGroupKey, pod_group: RecordObject | None) -> RecordObject | None:
        """Where the next record is written: the PodGroup, unless it stores that of another flavor's group."""
        if pod_group is None or self._is_taken(key, pod_group):
            return self._objects.get(_config_map_place(key))
        return pod_group

    def record_of(self, key: PodGroupKey, gangs: Collection[str] = ()) -> AdmissionRecord | None:
        """The valid record among those on the group's own objects and on that of a GangGroup's first gang.

        `gangs`: paths of the gangs that the group itself names.
        """
        own = [it.record for it in self.objects_of(key) if it.record is not None]
        deciding = self._deciding.get(key, {}).items()
        others = [it for place, it in deciding if self._may_decide(key, place, it, gangs)]
        found = records.latest_record(key, own, others)
        # A record that a user writes must not evict the pods of another namespace.
        if found is None or self._across:
            return found
        return records.narrow_record(found, lambda it: it.namespace == key.namespace)

    def flavors_reading(self, api: str) -> tuple[Flavor, ...]:
        """Flavors that read PodGroups of an API group; an unused PodGroup belongs to the first."""
        return self._readers[api]

    # --- Details -----------------------------------------------------------------------------------------------------

    def _keys_of(self, place: ObjectPlace, it: RecordObject | None) -> set[PodGroupKey]:
        return set() if it is None else {*self._owners(place, it), *self._decided_at(place, it)}

    def _owners(self, place: ObjectPlace, it: RecordObject) -> list[PodGroupKey]:
        """The groups that an object may belong to."""
        if it.key is not None:
            return [it.key]
        api, namespace, name = place
        return [PodGroupKey(flavor=flavor, namespace=namespace, name=name) for flavor in self._readers.get(api, ())]

    def _is_taken(self, key: PodGroupKey, pod_group: RecordObject) -> bool:
        decided = [] if pod_group.record is None else [key for key, _ in pod_group.record.gangs]
        designs = self.flavors_reading(pod_group.ref.api)
        return key not in decided and any(it.path == key.path and it.flavor in designs for it in decided)

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


def _config_map_place(key: PodGroupKey) -> ObjectPlace:
    return "", key.namespace, names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key)


def _same(one: RecordObject, other: RecordObject) -> bool:
    """Whether only the version differs."""
    return one.ref.uid == other.ref.uid and msgspec.structs.replace(one, ref=other.ref) == other
