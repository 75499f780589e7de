"""What our own reads and writes have shown goes into the informer's cache, in order with what the watch tells.

Otherwise a relist could not know of an object that was made by us and lost before the watch told of it: it would
compare the list with a cache in which the object never was, and nobody would ever hear that it is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar

from jobset_gate.runtime.decoder import W
from jobset_gate.runtime.store import ObjectKey, ObjectVersion, Store

M = TypeVar("M")


class MutationCache(Generic[W, M]):
    """Each method gives what is known of the object afterwards. The informer's handler is not told: the caller knows.

    A watch that tells later of what was seen here finds it known already; one that has told of something later stands.
    """

    def __init__(self, store: Store[M], convert: Callable[[W], M | None]) -> None:
        self._store, self._convert = store, convert

    def observe_object(self, item: W) -> M | None:
        """The API has answered with this object."""
        if self._store.is_newer(item.metadata):
            self._store.put_response(item.metadata, self._convert(item))
        return self._store.models.get((item.metadata.namespace, item.metadata.name))

    def known_version(self, key: ObjectKey) -> ObjectVersion | None:
        """The version that is known now. Ask before a read: its answer NotFound is about this one, or an older one."""
        return self._store.version_of(key)

    def observe_absence(self, key: ObjectKey, version: ObjectVersion | None) -> M | None:
        """The API has answered that there is no such object any more."""
        if version is not None:
            self._store.remove_version(key, version)
        return self._store.models.get(key)
