"""The cache behind an informer: the latest known version of each object, and how old the cache may be."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

from jobset_gate.runtime.clock import monotonic

M = TypeVar("M")
ObjectKey = tuple[str, str]
"""(namespace, name); the namespace of a cluster-scoped object is ""."""

MAX_TOMBSTONES = 10_000


class VersionedMeta(Protocol):
    """The part of metadata that identifies one version of one object."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


class WireObject(Protocol):
    """What an object is decoded into: a msgspec.Struct with at least this field."""

    @property
    def metadata(self) -> VersionedMeta: ...


W = TypeVar("W", bound=WireObject)


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[M]):
    """A change of the cache: `old` None: the object was added; `new` None: it was removed."""

    key: ObjectKey
    old: M | None
    new: M | None


class ObjectVersion(msgspec.Struct, frozen=True, gc=False):
    """One version of one object. As many as objects are cached, so the garbage collector does not track them."""

    uid: str
    resource_version: str


class Store(Generic[W, M]):
    """Models by key. Methods that apply an event return the change that they made to the cache, None for none.

    As client-go's MutationCache it also takes the results of our own reads and writes, in order with the watch: else a
    relist could miss the deletion of an object that we created and that was gone before the watch reported it, since
    the list would be compared with a cache in which the object never was.
    """

    def __init__(self, convert: Callable[[W], M | None]) -> None:
        """`convert` makes the model, or returns None to leave the object out."""
        self._convert = convert
        self.models: dict[ObjectKey, M] = {}
        self._versions: dict[ObjectKey, ObjectVersion] = {}  # also of objects that convert() left out
        # uid -> version of its deletion, oldest first. A late event must not bring a deleted object back; but an object
        # that only left the selector is reported as deleted too, and may come back later under the same uid.
        self._tombstones: dict[str, str] = {}
        self._list_version = ""
        self._responded: set[ObjectKey] = set()  # from responses to our own requests since the last list began

    def put(self, item: W) -> ObjectChange[M] | None:
        """The object now has this version; ignored, and not converted, if the known version is not earlier."""
        meta, key = item.metadata, _key(item.metadata)
        gone, known = self._tombstones.get(meta.uid), self._versions.get(key)
        if not self._is_after_list(meta) or (gone is not None and not is_later(meta.resource_version, gone)):
            return None
        if known is not None and not is_later(meta.resource_version, known.resource_version):
            return None
        self._versions[key] = ObjectVersion(meta.uid, meta.resource_version)
        return self._set(key, self._convert(item))

    def remove(self, meta: VersionedMeta) -> ObjectChange[M] | None:
        """The object is deleted, or no longer matches the selector; ignored if the known version is later."""
        if not self._is_after_list(meta):
            return None
        self._add_tombstone(meta.uid, meta.resource_version)
        known = self._versions.get(_key(meta))
        if known is None or not (is_later(meta.resource_version, known.resource_version) or self.has_version(meta)):
            return None
        del self._versions[_key(meta)]
        return self._set(_key(meta), None)

    def has_version(self, meta: VersionedMeta) -> bool:
        """Is exactly this version known?"""
        return self.version_of(_key(meta)) == ObjectVersion(meta.uid, meta.resource_version)

    def version_of(self, key: ObjectKey) -> ObjectVersion | None:
        """The known version, also of an object that convert() left out."""
        return self._versions.get(key)

    # Responses to our own requests: each method returns what is known afterwards, and a later event changes nothing.

    def observe_object(self, item: W) -> M | None:
        """The API server has responded with this object; a list in flight may be older."""
        key = _key(item.metadata)
        known = self.version_of(key)
        self.put(item)
        if self.version_of(key) != known:
            self._responded.add(key)
        return self.models.get(key)

    def observe_absence(self, key: ObjectKey, version: ObjectVersion | None) -> M | None:
        """The API server has responded NotFound to a request that began when this version was known."""
        if version is not None:
            self._add_tombstone(version.uid, version.resource_version)
            if self._versions.get(key) == version:
                del self._versions[key]
                self._set(key, None)
        return self.models.get(key)

    # Lists

    def begin_list(self) -> None:
        """Earlier responses are in the list that begins now, or their objects are gone."""
        self._responded.clear()

    def listed(self, item: W) -> tuple[ObjectVersion, M | None]:
        """An item of that list; it is converted only if this version is not known."""
        meta = item.metadata
        model = self.models.get(_key(meta)) if self.has_version(meta) else self._convert(item)
        return ObjectVersion(meta.uid, meta.resource_version), model

    def replace(
        self, listed: Mapping[ObjectKey, tuple[ObjectVersion, M | None]], resource_version: str
    ) -> list[ObjectChange[M]]:
        """Makes the cache equal to a list. Deletions come first among the changes."""
        self._list_version = resource_version
        changes: list[ObjectChange[M] | None] = []
        # From responses while the list was in flight: the watch that begins at the list's version brings those.
        ahead = {key for key in self._responded if self._is_after(key, resource_version)}
        for key in self._versions.keys() - listed.keys() - ahead:
            self._add_tombstone(self._versions.pop(key).uid, resource_version)
            changes.append(self._set(key, None))
        for key, (version, model) in listed.items():
            if self._versions.get(key) != version and key not in ahead:
                self._versions[key] = version
                self._tombstones.pop(version.uid, None)
                changes.append(self._set(key, model))
        return [change for change in changes if change is not None]

    def _set(self, key: ObjectKey, model: M | None) -> ObjectChange[M] | None:
        old = self.models.get(key)
        if model is not None:
            self.models[key] = model
        elif old is not None:
            del self.models[key]
        return None if old is None and model is None else ObjectChange(key, old, model)

    def _is_after_list(self, meta: VersionedMeta) -> bool:
        # A watch that starts at the list's version brings later events only; an earlier one is a replay.
        return not self._list_version or is_later(meta.resource_version, self._list_version)

    def _is_after(self, key: ObjectKey, listed: str) -> bool:
        known = self._versions.get(key)
        if known is None or not (known.resource_version.isdecimal() and listed.isdecimal()):
            return False  # only numbers can be compared; otherwise the list is right
        return is_later(known.resource_version, listed)

    def _add_tombstone(self, uid: str, version: str) -> None:
        if not uid or (uid in self._tombstones and not is_later(version, self._tombstones[uid])):
            return
        self._tombstones[uid] = version
        if len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]


class Staleness:
    """A cache has all that was written before its last list began, and before the write that its latest event reports.

    A watch keeps the order of writes, so that holds whenever the event arrives. That an event arrives proves nothing:
    a watch that hung brings old events first, and the cache is old until the last of them. `clock` is Unix time.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._current_at = -math.inf
        self._is_complete = True

    @property
    def seconds(self) -> float:
        """Older writes are in the cache; infinite before the first list."""
        return monotonic() - self._current_at

    def observe_list(self, start: float) -> None:
        """The cache equals a list that began then, on the monotonic clock."""
        self._current_at, self._is_complete = max(self._current_at, start), True

    def observe_event(self, written_at: float) -> None:
        """The cache has the event of an object that the API server wrote then, in Unix time."""
        if self._is_complete:
            self._current_at = max(self._current_at, monotonic() - max(0.0, self._clock() - written_at))

    def observe_loss(self) -> None:
        """An event was lost: until the next list, later ones say nothing of earlier writes."""
        self._is_complete = False


def is_later(one: str, other: str) -> bool:
    """Is resourceVersion `one` later than `other`? Versions that are not numbers can only differ."""
    if one.isdecimal() and other.isdecimal():
        return int(one) > int(other)
    return one != other


def _key(meta: VersionedMeta) -> ObjectKey:
    return meta.namespace, meta.name
