"""DELETE with preconditions, grace and finalizers; and the garbage collector of kube-controller-manager.

Dependents go when all their owners are gone, in the background only: another propagation policy is not played.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict

from jobset_gate.objects.unstructured import as_map, nested
from jobset_gate_demo.fake.apiserver.kinds import ServedKind
from jobset_gate_demo.fake.apiserver.requests import ApiRequest, RequestTarget, ServerState
from jobset_gate_demo.fake.apiserver.responses import ApiResponse, Obj, conflict, decode
from jobset_gate_demo.fake.apiserver.store import Key, StoredObject, StoreEvent
from jobset_gate_demo.fake.objects import stamp

_DEFAULT_GRACE = 30
_PODS = ("", "pods")


async def delete(state: ServerState, request: ApiRequest) -> ApiResponse:
    body = decode(request.body) if request.body else {}
    live, wanted = state.existing(request.target).meta, as_map(body.get("preconditions"))
    for name in ("uid", "resourceVersion"):
        if wanted.get(name) not in (None, live[name]):
            why = f"the {name} in the precondition ({wanted[name]}) does not match that in record ({live[name]})"
            raise conflict(request.kind, live["name"], why)
    return delete_object(state, request.target, body.get("gracePeriodSeconds"))


def delete_object(state: ServerState, target: RequestTarget, grace_seconds: int | None = None) -> ApiResponse:
    """Delete, or set the deletion timestamp while finalizers or a kubelet have work; answers with the last state."""
    kind, live = target.kind, state.existing(target)
    new = live.fresh()
    meta, grace = new["metadata"], _grace(kind, new, grace_seconds)
    if not meta.get("finalizers") and not grace:
        if "deletionGracePeriodSeconds" in meta:
            meta["deletionGracePeriodSeconds"] = 0
        return ApiResponse(200, state.store.remove(kind, new).raw)
    if "deletionTimestamp" in meta and grace >= meta["deletionGracePeriodSeconds"]:
        return ApiResponse(200, live.raw)
    if "deletionTimestamp" not in meta and "generation" in meta:
        meta["generation"] += 1
    meta |= {"deletionTimestamp": stamp(state.clock() + grace), "deletionGracePeriodSeconds": grace}
    return ApiResponse(200, state.store.commit(kind, new).raw)


def _grace(kind: ServedKind, obj: Obj, seconds: int | None) -> int:
    """Seconds: only pods that run on a node have any."""
    ended = nested(obj, "status", "phase") in ("Succeeded", "Failed")
    if kind.key != _PODS or ended or not nested(obj, "spec", "nodeName"):
        return 0
    given = nested(obj, "spec", "terminationGracePeriodSeconds") if seconds is None else seconds
    return _DEFAULT_GRACE if given is None else int(given)


class GarbageCollector:
    """Deletes what has lost all of its owners, soon."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._live: set[str] = set()
        self._dependents: defaultdict[str, dict[tuple[ServedKind, Key], None]] = defaultdict(dict)
        state.store.listeners.append(self._on_change)

    def _on_change(self, kind: ServedKind, change: StoreEvent) -> None:
        key, uid = change.now.key, change.now.meta.get("uid", "")
        if change.deleted:
            self._live.discard(uid)
            for place in self._dependents.pop(uid, {}):
                asyncio.get_running_loop().call_soon(self._collect, *place)
            return
        self._live.add(uid)
        owners = _owners(change.now)
        for owner in owners:
            self._dependents[owner][kind, key] = None
        if owners and self._live.isdisjoint(owners):
            asyncio.get_running_loop().call_soon(self._collect, kind, key)

    def _collect(self, kind: ServedKind, key: Key) -> None:
        row = self._state.store.row(kind, *key)
        owners = _owners(row) if row else []
        if owners and self._live.isdisjoint(owners):
            delete_object(self._state, RequestTarget(kind, key[0], key[1]))


def _owners(row: StoredObject) -> list[str]:
    return [ref["uid"] for ref in row.meta.get("ownerReferences") or ()]
