"""The cache behind an informer: which version of each object is known, so that old news never overwrites newer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import msgspec

M = TypeVar("M")
ObjectKey = tuple[str, str]
"""(namespace, name); the namespace is "" for what has none."""

MAX_TOMBSTONES = 10_000


class VersionedMeta(Protocol):
    """The part of metadata that says which object in which version this is."""

    @property
    def name(self) -> str: ...
    @property
    def namespace(self) -> str: ...
    @property
    def uid(self) -> str: ...
    @property
    def resource_version(self) -> str: ...


@dataclass(frozen=True, slots=True)
class ObjectChange(Generic[M]):
    """One object: `old` None means it is new, `new` None that it is gone (or no longer of interest)."""

    key: ObjectKey
    old: M | None
    new: M | None


class ObjectVersion(msgspec.Struct, frozen=True, gc=False):
    """One version of one object. There is one for each object: the garbage collector need not look at them."""

    uid: str
    resource_version: str


class Store(Generic[M]):
    """Models by key. Every method is told about one fact and gives the Change that it makes, None for none."""

    def __init__(self) -> None:
        self.models: dict[ObjectKey, M] = {}
        self._versions: dict[
            ObjectKey, ObjectVersion
        ] = {}  # also of objects without a model, whose old news must be known as old
        # uid -> version at which it went, oldest first. A late event must not bring the dead back; but what only left
        # the selector is told as deleted too, and may come back later under the same uid.
        self._tombstones: dict[str, str] = {}
        self._list_version = ""
        self._responded: set[ObjectKey] = set()  # what answers to us have shown since the last list was begun

    def is_newer(self, meta: VersionedMeta) -> bool:
        """Is this version of the object later than what is known? Ask before the work of converting it."""
        gone = self._tombstones.get(meta.uid)
        if not self._is_after_list(meta) or (gone is not None and not is_later(meta.resource_version, gone)):
            return False
        known = self._versions.get((meta.namespace, meta.name))
        return known is None or is_later(meta.resource_version, known.resource_version)

    def put(self, meta: VersionedMeta, model: M | None) -> ObjectChange[M] | None:
        """The object is now `model` (None: of no interest). Only for what is_news()."""
        key = (meta.namespace, meta.name)
        self._versions[key] = ObjectVersion(meta.uid, meta.resource_version)
        return self._set(key, model)

    def remove(self, meta: VersionedMeta) -> ObjectChange[M] | None:
        """The object is deleted (or matches the selector no more), unless what we know of it is later."""
        if not self._is_after_list(meta):
            return None
        self._add_tombstone(meta.uid, meta.resource_version)
        key = (meta.namespace, meta.name)
        known = self._versions.get(key)
        if known is None or not (is_later(meta.resource_version, known.resource_version) or self.has_version(meta)):
            return None
        del self._versions[key]
        return self._set(key, None)

    def has_version(self, meta: VersionedMeta) -> bool:
        """Is exactly this version known already?"""
        return self.version_of((meta.namespace, meta.name)) == ObjectVersion(meta.uid, meta.resource_version)

    def version_of(self, key: ObjectKey) -> ObjectVersion | None:
        """What is known of the object, also if it is of no interest."""
        return self._versions.get(key)

    def put_response(self, meta: VersionedMeta, model: M | None) -> None:
        """As put(), from the answer to a read or a write of ours: a list under way may be older."""
        self._responded.add((meta.namespace, meta.name))
        self.put(meta, model)

    def remove_version(self, key: ObjectKey, version: ObjectVersion) -> None:
        """An answer to us has shown that this version is gone; what is known to be later stays."""
        self._add_tombstone(version.uid, version.resource_version)
        if self._versions.get(key) == version:
            del self._versions[key]
            self._set(key, None)

    def begin_list(self) -> None:
        """What has been answered before is in the list, or gone."""
        self._responded.clear()

    def replace(
        self, listed: Mapping[ObjectKey, tuple[ObjectVersion, M | None]], resource_version: str
    ) -> list[ObjectChange[M]]:
        """All there is, from a list: what is not in it is gone. Deletions come first among the changes."""
        self._list_version = resource_version
        changes: list[ObjectChange[M] | None] = []
        # Answered while the list was under way: the watch that begins at the list's version will tell of those.
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
        # A watch that starts at the list's version tells only of what came after it; anything else is an echo.
        return not self._list_version or is_later(meta.resource_version, self._list_version)

    def _is_after(self, key: ObjectKey, listed: str) -> bool:
        known = self._versions.get(key)
        if known is None or not (known.resource_version.isdecimal() and listed.isdecimal()):
            return False  # only numbers say so surely; in doubt the list is right
        return is_later(known.resource_version, listed)

    def _add_tombstone(self, uid: str, version: str) -> None:
        if not uid or (uid in self._tombstones and not is_later(version, self._tombstones[uid])):
            return
        self._tombstones[uid] = version
        if len(self._tombstones) > MAX_TOMBSTONES:
            del self._tombstones[next(iter(self._tombstones))]


def is_later(one: str, other: str) -> bool:
    """Is resourceVersion `one` later than `other`? Versions that are no numbers are only known to differ."""
    if one.isdecimal() and other.isdecimal():
        return int(one) > int(other)
    return one != other
