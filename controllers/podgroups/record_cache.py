"""The objects that records are kept on, PodGroups and ConfigMaps, and which groups each of them tells of.

What our own writes have stored is known here ahead of the watch, and no older word of the watch takes it back.
"""

from collections.abc import Collection
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.podgroups import decode_records
from jobset_gate.podgroups import record as records
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.model import POD_GROUP_APIS, Flavor, PodGroupKey
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import RecordObject, RecordRef
from jobset_gate.runtime.store import is_later

ObjectPlace = tuple[str, str, str]
"""(API group, namespace, name); the API group of a ConfigMap is ""."""

_BY_RIGHT: Final = (Flavor.KEP_24, Flavor.SCHEDULER_PLUGINS, Flavor.KOORDINATOR)
"""Whose a PodGroup is that no pod names: of the designs that look into its API group, the first."""


class RecordCache:
    """All of them, and by group those records of others that tell of it, too."""

    def __init__(self, designs: Collection[Flavor], *, across_namespaces: bool) -> None:
        """`designs`: those that are switched on. `across_namespaces`: gangs of several may open together."""
        self._across = across_namespaces
        self._looking = {
            api: tuple(design for design in _BY_RIGHT if design in designs and api in POD_GROUP_APIS[design])
            for api in {api for apis in POD_GROUP_APIS.values() for api in apis}
        }
        self._stored: dict[ObjectPlace, RecordObject] = {}
        self._ahead: dict[ObjectPlace, RecordObject] = {}
        self._telling: dict[PodGroupKey, dict[ObjectPlace, AdmissionRecord]] = {}

    # --- Changes: each gives the groups that it may concern ----------------------------------------------------------

    def put_object(self, new: RecordObject) -> set[PodGroupKey]:
        """The watch tells of an object."""
        place = _place(new.ref)
        before, ahead = self.object_at(place), self._ahead.get(place)
        self._stored[place] = new
        if ahead is not None and not is_later(ahead.ref.resource_version, new.ref.resource_version):
            del self._ahead[place]
        return self._changed(place, before)

    def remove_object(self, old: RecordObject) -> set[PodGroupKey]:
        """The watch tells that an object is gone."""
        place = _place(old.ref)
        before, ahead = self.object_at(place), self._ahead.get(place)
        self._stored.pop(place, None)
        if ahead is not None and ahead.ref.uid == old.ref.uid:
            del self._ahead[place]
        return self._changed(place, before)

    def observe_write(self, key: PodGroupKey, home: RecordRef, record: AdmissionRecord | None) -> set[PodGroupKey]:
        """A read or a write of ours was answered with this version of a group's home, and this record on it."""
        place = _place(home)
        before = self.object_at(place)
        if before is not None and not is_later(home.resource_version, before.ref.resource_version):
            return set()
        self._ahead[place] = RecordObject(
            ref=home, key=None if home.api else key, record=decode_records.of_home(record, home)
        )
        return self._changed(place, before)

    def observe_gone(self, home: RecordRef) -> set[PodGroupKey]:
        """A read or a write of ours was answered that the object is gone."""
        place = _place(home)
        before = self.object_at(place)
        for known in (self._stored, self._ahead):
            if place in known and known[place].ref.uid == home.uid:
                del known[place]
        return self._changed(place, before)

    # --- Looking -----------------------------------------------------------------------------------------------------

    def object_at(self, place: ObjectPlace) -> RecordObject | None:
        """The object as it is known by now."""
        stored, ahead = self._stored.get(place), self._ahead.get(place)
        if ahead is None:
            return stored
        if stored is None or stored.ref.uid != ahead.ref.uid:
            # Of a PodGroup that the watch has not told of, nothing is known but its record.
            return stored if ahead.ref.api else ahead
        return msgspec.structs.replace(stored, ref=ahead.ref, record=ahead.record, problem=None)

    def pod_groups(self, key: PodGroupKey) -> list[RecordObject]:
        """The PodGroups of a group's name in the API groups that its design looks into, the one that wins first."""
        found = (self.object_at((api, key.namespace, key.name)) for api in POD_GROUP_APIS[key.design])
        return [home for home in found if home is not None]

    def objects_of(self, key: PodGroupKey) -> list[RecordObject]:
        """All objects that a group's own record may be on: those, and its ConfigMap."""
        config_map = self.object_at(_map_of(key))
        return [*self.pod_groups(key), *([] if config_map is None else [config_map])]

    def object_to_write(self, key: PodGroupKey, pod_group: RecordObject | None) -> RecordObject | None:
        """Where its record is to be written: on its PodGroup, unless a group of another design has it there already."""
        if pod_group is None or self._is_taken(key, pod_group):
            return self.object_at(_map_of(key))
        return pod_group

    def has_foreign_records(self, key: PodGroupKey) -> bool:
        """Whether anything in another namespace tells of a group, which is to be believed only if the group says so."""
        return self._across and any(namespace != key.namespace for _, namespace, _ in self._telling.get(key, ()))

    def record_of(self, key: PodGroupKey, gangs: Collection[str] = ()) -> AdmissionRecord | None:
        """What holds of all that was decided on a group, on its own homes or on that of a GangGroup's first gang.

        `gangs`: the paths of those that the group itself wants to be opened with.
        """
        stored = [it.record for it in self.objects_of(key) if it.record is not None]
        own = max(stored, key=lambda it: mine.generation if (mine := records.record_for(it, key)) else 0, default=None)
        telling = self._telling.get(key, {})
        found = records.latest_record(
            key, own, [it for place, it in telling.items() if self._may_tell(key, place, it, gangs)]
        )
        # What users write there must not take back the pods of others.
        return found if found is None or self._across else records.record_within(found, key.namespace)

    def designs_reading(self, api: str) -> tuple[Flavor, ...]:
        """The designs that look for their PodGroups in an API group; the first has it by right."""
        return self._looking[api]

    # --- Details -----------------------------------------------------------------------------------------------------

    def _changed(self, place: ObjectPlace, before: RecordObject | None) -> set[PodGroupKey]:
        now = self.object_at(place)
        if before is not None and now is not None and _same(before, now):
            return set()
        concerned = self._told_by(place, before) | self._told_by(place, now)
        for key in self._decided_at(place, before):
            listed = self._telling[key]
            del listed[place]
            if not listed:
                del self._telling[key]
        for key in self._decided_at(place, now):
            assert now is not None and now.record is not None  # noqa: PT018, S101 - or nothing were decided there
            self._telling.setdefault(key, {})[place] = now.record
        return concerned

    def _told_by(self, place: ObjectPlace, home: RecordObject | None) -> set[PodGroupKey]:
        return set() if home is None else {*self._of(place, home), *self._decided_at(place, home)}

    def _of(self, place: ObjectPlace, home: RecordObject) -> list[PodGroupKey]:
        """The groups whose home it may be."""
        if home.key is not None:
            return [home.key]
        api, namespace, name = place
        return [PodGroupKey(design=design, namespace=namespace, name=name) for design in self._looking.get(api, ())]

    def _is_taken(self, key: PodGroupKey, pod_group: RecordObject) -> bool:
        decided = [] if pod_group.record is None else [it for it, _ in pod_group.record.gangs]
        designs = self.designs_reading(pod_group.ref.api)
        return key not in decided and any(it.path == key.path and it.design in designs for it in decided)

    def _may_tell(self, key: PodGroupKey, place: ObjectPlace, record: AdmissionRecord, gangs: Collection[str]) -> bool:
        """Whoever may write in one namespace decides nothing in another, unless a setting lets gangs join, and the gang
        over there is one that this one has joined.
        """
        return place[1] == key.namespace or (self._across and record.gangs[0][0].path in gangs)

    def _decided_at(self, place: ObjectPlace, home: RecordObject | None) -> set[PodGroupKey]:
        """The groups that a record decides on. It does so only on the home of the first of them: others are copies."""
        if home is None or home.record is None:
            return set()
        gangs = [key for key, _ in home.record.gangs]
        return set(gangs) if gangs and gangs[0] in self._of(place, home) else set()


def _place(home: RecordRef) -> ObjectPlace:
    return home.api, home.namespace, home.name


def _map_of(key: PodGroupKey) -> ObjectPlace:
    return "", key.namespace, names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key)


def _same(one: RecordObject, other: RecordObject) -> bool:
    """Whether nothing but the version differs; records are compared as they are read, not as they are written."""
    if one.ref.uid != other.ref.uid or _notes(one) != _notes(other):
        return False
    return msgspec.structs.replace(one, ref=other.ref, annotations=other.annotations) == other


def _notes(home: RecordObject) -> dict[str, str]:
    return {name: said for name, said in home.annotations.items() if name != names.POD_GROUP_RECORD}
