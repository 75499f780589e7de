"""What the controller manager's collectors do: dependents follow their owners, namespaces empty themselves.

Runs as one task beside the server, woken by every write; it deletes through the ordinary path, webhooks included.
"""

from __future__ import annotations

import asyncio
import logging

from jobset_gate.fake.apiserver import deletes
from jobset_gate.fake.apiserver.deletes import FOREGROUND, ORPHAN, DeleteOptions
from jobset_gate.fake.apiserver.encoding import Obj
from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.namespaces import NAMESPACE
from jobset_gate.fake.apiserver.owner_graph import OwnerGraph, Place
from jobset_gate.fake.apiserver.requests import ApiRequest, RequestTarget
from jobset_gate.fake.apiserver.state import ServerState
from jobset_gate.fake.apiserver.status_errors import StatusError
from jobset_gate.fake.apiserver.store import StoredObject, StoreEvent

_AGENT = "kube-controller-manager"
_RETRY_SECONDS = 1.0
_log = logging.getLogger(__name__)


class GarbageCollector:
    """`run()` until cancelled."""

    def __init__(self, core: ServerState) -> None:
        self._core = core
        self._family = OwnerGraph()
        self._due: dict[Place, None] = {}
        self._wake = asyncio.Event()
        core.store.listeners.append(self._changed)

    async def run(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._due:
                place = next(iter(self._due))
                del self._due[place]
                await self._attend(place)

    async def _attend(self, place: Place) -> None:
        row = self._at(place)
        if row is None:
            return
        kind, (namespace, name) = self._family.kinds[place[0]], place[1]
        try:
            await self._collect(kind, row)
        except StatusError as problem:
            # A webhook or a race refused: the real collector tries again too.
            _log.debug("garbage collection of %s %s/%s: %s", kind.plural, namespace, name, problem.message)
            asyncio.get_running_loop().call_later(_RETRY_SECONDS, self._later, place)

    def _later(self, place: Place) -> None:
        self._due[place] = None
        self._wake.set()

    def _changed(self, kind: ServedKind, change: StoreEvent) -> None:
        for place in self._family.note(kind, change):
            self._later(place)
        now = change.now
        if change.deleted:
            self._wake_namespace(now.key[0])
        elif "deletionTimestamp" in now.meta:
            self._later((kind.key, now.key))

    def _wake_namespace(self, namespace: str) -> None:
        row = self._core.store.row(NAMESPACE, "", namespace) if namespace else None
        if row is not None and row.meta.get("deletionTimestamp"):
            self._later((NAMESPACE.key, row.key))

    async def _collect(self, kind: ServedKind, row: StoredObject) -> None:
        meta = row.meta
        if "deletionTimestamp" in meta:
            if kind.key == NAMESPACE.key and await self._empty_namespace(row):
                return
            if FOREGROUND in (meta.get("finalizers") or ()):
                self._delete_dependents_first(kind, row)
            elif ORPHAN in (meta.get("finalizers") or ()):
                self._orphan_dependents(kind, row)
            return
        refs = meta.get("ownerReferences") or []
        gone = [ref for ref in refs if ref["uid"] not in self._family.live]
        waiting = [ref for ref in refs if self._waits_for(ref)]
        solid = [ref for ref in refs if ref not in gone and ref not in waiting]
        if solid and (gone or waiting):
            self._set_owners(kind, row, solid)
        elif not solid and (gone or waiting):
            await self._delete(kind, row, waiting=bool(waiting))

    def _waits_for(self, ref: Obj) -> bool:
        """Whether an owner is being deleted and waits for this dependent."""
        owner = self._row(ref["uid"])
        if owner is None or not ref.get("blockOwnerDeletion"):
            return False
        meta = owner.meta
        return "deletionTimestamp" in meta and FOREGROUND in (meta.get("finalizers") or ())

    def _row(self, uid: str) -> StoredObject | None:
        place = self._family.live.get(uid)
        return self._at(place) if place else None

    def _at(self, place: Place) -> StoredObject | None:
        return self._core.store.row(self._family.kinds[place[0]], *place[1])

    async def _delete(self, kind: ServedKind, row: StoredObject, *, waiting: bool) -> None:
        meta = row.meta
        has_dependents = bool(self._family.dependents(meta["uid"]))
        policy = "Foreground" if waiting and has_dependents else "Background"
        finalizers = meta.get("finalizers") or ()
        if FOREGROUND in finalizers:
            policy = "Foreground"
        elif ORPHAN in finalizers:
            policy = "Orphan"
        await self._delete_with(kind, row, DeleteOptions(uid=meta["uid"], propagation=policy))

    async def _delete_with(self, kind: ServedKind, row: StoredObject, options: DeleteOptions) -> None:
        namespace, name = row.key
        target = RequestTarget(kind, namespace or None, name)
        call = ApiRequest(
            "delete", target, agent=_AGENT, user="system:serviceaccount:kube-system:generic-garbage-collector"
        )
        await deletes.delete_one(self._core, call, options)

    def _delete_dependents_first(self, kind: ServedKind, row: StoredObject) -> None:
        uid = row.meta["uid"]
        dependents = self._family.dependents(uid)
        for place in dependents:
            self._later(place)
        if not any(self._blocks(place, uid) for place in dependents):
            self._drop_finalizer(kind, row, FOREGROUND)

    def _blocks(self, place: Place, uid: str) -> bool:
        row = self._at(place)
        refs = row.meta.get("ownerReferences") or () if row else ()
        return any(ref["uid"] == uid and ref.get("blockOwnerDeletion") for ref in refs)

    def _orphan_dependents(self, kind: ServedKind, row: StoredObject) -> None:
        uid = row.meta["uid"]
        for place in list(self._family.dependents(uid)):
            dependent = self._at(place)
            if dependent is not None:
                refs = dependent.meta.get("ownerReferences") or []
                self._set_owners(self._family.kinds[place[0]], dependent, [ref for ref in refs if ref["uid"] != uid])
        self._drop_finalizer(kind, row, ORPHAN)

    def _set_owners(self, kind: ServedKind, row: StoredObject, refs: list[Obj]) -> None:
        new = row.fresh()
        if refs:
            new["metadata"]["ownerReferences"] = refs
        else:
            new["metadata"].pop("ownerReferences", None)
        self._core.store.commit(kind, new)

    def _drop_finalizer(self, kind: ServedKind, row: StoredObject, name: str) -> None:
        new = row.fresh()
        meta = new["metadata"]
        meta["finalizers"] = [item for item in meta["finalizers"] if item != name]
        if meta["finalizers"]:
            self._core.store.commit(kind, new)
            return
        del meta["finalizers"]
        if meta.get("deletionGracePeriodSeconds"):
            self._core.store.commit(kind, new)
        else:
            self._core.store.remove(kind, new)

    async def _empty_namespace(self, namespace: StoredObject) -> bool:
        """Delete what is in it, and then the namespace; whether that is all there is to do now."""
        name = namespace.key[1]
        left = False
        for kind in [kind for kind in self._core.kinds if kind.namespaced]:
            table = self._core.store.table(kind)
            for key in list(table.span(name)):
                row = table.rows.get(key)
                if row is not None and "deletionTimestamp" not in row.meta:
                    await self._delete_with(kind, row, DeleteOptions(propagation="Background"))
            left = left or bool(table.span(name))
        current = self._core.store.row(NAMESPACE, "", name)
        if left or current is None:
            return True
        if not current.meta.get("finalizers"):
            self._core.store.remove(NAMESPACE, {**current.fresh(), "spec": {}})
            return True
        # Empty: its own finalizers are next.
        return False
