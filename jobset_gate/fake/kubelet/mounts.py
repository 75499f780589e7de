"""The ConfigMaps of the gangs as they stand in the pods' volumes: read at the mount, refreshed a sync later."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Callable

import msgspec

from jobset_gate import names
from jobset_gate.fake.objects import Key
from jobset_gate.runtime.store import ObjectChange


class _Meta(msgspec.Struct, rename="camel"):
    name: str
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""


class _Data(msgspec.Struct, rename={"verdict": names.KEY_VERDICT}):
    verdict: str = ""


class ConfigMapWire(msgspec.Struct):
    """A ConfigMap of which only the verdict is mounted."""

    metadata: _Meta
    data: _Data | None = None


def verdict_of(config_map: ConfigMapWire) -> str:
    """An informer's conversion."""
    return config_map.data.verdict if config_map.data else ""


class ConfigMapMounts:
    """`current` is what the kubelets' watch has told; `on_sync` callbacks run when mounted volumes catch up with it."""

    def __init__(self, sync_seconds: Callable[[], float]) -> None:
        self._sync_seconds = sync_seconds
        self._current: dict[Key, str] = {}
        self._mounted: defaultdict[Key, dict[str, Callable[[], None]]] = defaultdict(dict)

    def current(self, key: Key | None) -> str:
        """The verdict that a volume made or refreshed now shows; "" if there is no such ConfigMap."""
        return self._current.get(key, "") if key is not None else ""

    def mount(self, key: Key | None, uid: str, on_sync: Callable[[], None]) -> None:
        if key is not None:
            self._mounted[key][uid] = on_sync

    def unmount(self, key: Key | None, uid: str) -> None:
        if key is not None and key in self._mounted:
            self._mounted[key].pop(uid, None)
            if not self._mounted[key]:
                del self._mounted[key]

    def changed(self, change: ObjectChange[str]) -> None:
        """A watch event. One timer per change, however many pods mount it."""
        if change.old == change.new:
            return
        if change.new is None:
            self._current.pop(change.key, None)
        else:
            self._current[change.key] = change.new
        asyncio.get_running_loop().call_later(self._sync_seconds(), self._synced, change.key)

    def _synced(self, key: Key) -> None:
        for on_sync in list(self._mounted.get(key, {}).values()):
            on_sync()
