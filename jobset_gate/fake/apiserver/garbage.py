"""The collectors of kube-controller-manager: dependents follow their owners, terminating namespaces empty themselves.

One task beside the server, woken by every write; it deletes through the ordinary handlers, webhooks included.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

from jobset_gate.fake.apiserver import deletes
from jobset_gate.fake.apiserver.deletes import FOREGROUND, DeleteOptions
from jobset_gate.fake.apiserver.kinds import NAMESPACES, ServedKind
from jobset_gate.fake.apiserver.requests import ApiRequest, RequestTarget, ServerState
from jobset_gate.fake.apiserver.responses import Obj, StatusError
from jobset_gate.fake.apiserver.store import Key, StoredObject, StoreEvent

_AGENT = "kube-controller-manager"
_USER = "system:serviceaccount:kube-system:generic-garbage-collector"
_RETRY_SECONDS = 1.0
_log = logging.getLogger(__name__)

Place = tuple[tuple[str, str], Key]
"""One object: its kind's group and plural, its namespace and name."""


class OwnerGraph:
    """The stored objects by uid, and their dependents. kinds: by group and plural."""

    def __init__(self) -> None:
        self.kinds: dict[tuple[str, str], ServedKind] = {}
        self.live: dict[str, Place] = {}
        self._dependents: dict[str, dict[Place, None]] = {}

    def dependents(self, uid: str) -> list[Place]:
        """Objects that name this uid as an owner, whether it exists or not."""
        return list(self._dependents.get(uid, ()))

    def update(self, kind: ServedKind, change: StoreEvent) -> Iterator[Place]:
        """Apply a write; yields the objects to collect: orphans, waiting owners, the object if its owners changed."""
        self.kinds[kind.key] = kind
        place, uid = (kind.key, change.now.key), change.now.meta.get("uid", "")
        before = _owners(change.old) if change.old else []
        after = [] if change.deleted else _owners(change.now)
        if change.deleted:
            self.live.pop(uid, None)
            yield from self.dependents(uid)
        else:
            self.live[uid] = place
        if before != after:
            for owner in set(before) - set(after):
                siblings = self._dependents.get(owner, {})
                siblings.pop(place, None)
                if not siblings:
                    self._dependents.pop(owner, None)
                if owner in self.live:
                    yield self.live[owner]
            for owner in after:
                self._dependents.setdefault(owner, {})[place] = None
            if not change.deleted:
                yield place


def _owners(row: StoredObject) -> list[str]:
    return [ref["uid"] for ref in row.meta.get("ownerReferences") or ()]


class GarbageCollector:
    """`run()` until cancelled."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._graph = OwnerGraph()
        self._due: dict[Place, None] = {}
        self._wake = asyncio.Event()
        state.store.listeners.append(self._on_change)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                place = next(iter(self._due))
                del self._due[place]
                await self._collect_place(place)

    async def _collect_place(self, place: Place) -> None:
        row = self._at(place)
        if row is None:
            return
        kind = self._graph.kinds[place[0]]
        try:
            await self._collect(kind, row)
        except StatusError as error:
            # A webhook or a concurrent write refused it.
            _log.debug("garbage collection of %s %s: %s", kind.plural, place[1], error.message)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._enqueue, place)

    def _enqueue(self, place: Place) -> None:
        self._due[place] = None
        self._wake.set()

    def _on_change(self, kind: ServedKind, change: StoreEvent) -> None:
        for place in self._graph.update(kind, change):
            self._enqueue(place)
        now = change.now
        if not change.deleted:
            if "deletionTimestamp" in now.meta:
                self._enqueue((kind.key, now.key))
            return
        namespace = self._state.store.row(NAMESPACES, "", now.key[0]) if now.key[0] else None
        if namespace is not None and namespace.meta.get("deletionTimestamp"):
            self._enqueue((NAMESPACES.key, namespace.key))

    async def _collect(self, kind: ServedKind, row: StoredObject) -> None:
        meta = row.meta
        if "deletionTimestamp" in meta:
            if kind.key == NAMESPACES.key and await self._empty_namespace(row):
                return
            if FOREGROUND in (meta.get("finalizers") or ()):
                self._delete_dependents_first(kind, row)
            return
        refs = meta.get("ownerReferences") or []
        gone = [ref for ref in refs if ref["uid"] not in self._graph.live]
        waiting = [ref for ref in refs if self._waits_for(ref)]
        solid = [ref for ref in refs if ref not in gone and ref not in waiting]
        if solid and (gone or waiting):
            self._set_owners(kind, row, solid)
        elif gone or waiting:
            foreground = bool(waiting and self._graph.dependents(meta["uid"]))
            policy = "Foreground" if foreground or FOREGROUND in (meta.get("finalizers") or ()) else "Background"
            await self._delete(kind, row, DeleteOptions(uid=meta["uid"], propagation=policy))

    def _waits_for(self, ref: Obj) -> bool:
        """Whether an owner is being deleted and waits for this dependent."""
        place = self._graph.live.get(ref["uid"])
        owner = self._at(place) if place else None
        if owner is None or not ref.get("blockOwnerDeletion"):
            return False
        return "deletionTimestamp" in owner.meta and FOREGROUND in (owner.meta.get("finalizers") or ())

    def _at(self, place: Place) -> StoredObject | None:
        return self._state.store.row(self._graph.kinds[place[0]], *place[1])

    async def _delete(self, kind: ServedKind, row: StoredObject, options: DeleteOptions) -> None:
        namespace, name = row.key
        target = RequestTarget(kind, namespace or None, name)
        await deletes.delete_one(self._state, ApiRequest("delete", target, agent=_AGENT, user=_USER), options)

    def _delete_dependents_first(self, kind: ServedKind, row: StoredObject) -> None:
        uid = row.meta["uid"]
        dependents = self._graph.dependents(uid)
        for place in dependents:
            self._enqueue(place)
        if not any(self._blocks(place, uid) for place in dependents):
            self._drop_finalizer(kind, row, FOREGROUND)

    def _blocks(self, place: Place, uid: str) -> bool:
        row = self._at(place)
        refs = row.meta.get("ownerReferences") or () if row else ()
        return any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in refs)

    def _set_owners(self, kind: ServedKind, row: StoredObject, refs: list[Obj]) -> None:
        new = row.fresh()
        new["metadata"]["ownerReferences"] = refs
        if not refs:
            del new["metadata"]["ownerReferences"]
        self._state.store.commit(kind, new)

    def _drop_finalizer(self, kind: ServedKind, row: StoredObject, name: str) -> None:
        new = row.fresh()
        meta = new["metadata"]
        meta["finalizers"] = [item for item in meta["finalizers"] if item != name]
        keep = meta["finalizers"] or meta.get("deletionGracePeriodSeconds")
        if not meta["finalizers"]:
            del meta["finalizers"]
        (self._state.store.commit if keep else self._state.store.remove)(kind, new)

    async def _empty_namespace(self, namespace: StoredObject) -> bool:
        """Delete its contents, then the namespace; False when only its own finalizers are left."""
        name = namespace.key[1]
        left = False
        for kind in [kind for kind in self._state.kinds if kind.namespaced]:
            table = self._state.store.table(kind)
            for key in list(table.span(name)):
                row = table.rows.get(key)
                if row is not None and "deletionTimestamp" not in row.meta:
                    await self._delete(kind, row, DeleteOptions(propagation="Background"))
            left = left or bool(table.span(name))
        current = self._state.store.row(NAMESPACES, "", name)
        if left or current is None:
            return True
        if current.meta.get("finalizers"):
            return False
        self._state.store.remove(NAMESPACES, {**current.fresh(), "spec": {}})
        return True
