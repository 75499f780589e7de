"""DELETE with preconditions, grace and finalizers; and the garbage collector of kube-controller-manager.

Dependents go when all their owners are gone, in the background only: another propagation policy is not played.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass

from jobset_gate.objects.unstructured import as_map, nested
from jobset_gate_demo.fake.apiserver.kinds import ServedKind
from jobset_gate_demo.fake.apiserver.requests import ApiRequest, RequestTarget, ServerState
from jobset_gate_demo.fake.apiserver.responses import ApiResponse, Obj, conflict, decode
from jobset_gate_demo.fake.apiserver.store import Key, StoredObject, StoreEvent
from jobset_gate_demo.fake.objects import stamp

_DEFAULT_GRACE = 30
_PODS = ("", "pods")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """grace: seconds, None for the object's own."""

    uid: str = ""
    version: str = ""
    grace: int | None = None


async def delete(state: ServerState, request: ApiRequest) -> ApiResponse:
    body = decode(request.body) if request.body else {}
    wanted, grace = as_map(body.get("preconditions")), body.get("gracePeriodSeconds")
    options = DeleteOptions(wanted.get("uid") or "", wanted.get("resourceVersion") or "", grace)
    return delete_object(state, request.target, options)


def delete_object(state: ServerState, target: RequestTarget, options: DeleteOptions) -> ApiResponse:
    """Delete, or set the deletion timestamp while finalizers or a kubelet have work; answers with the last state."""
    kind, live = target.kind, state.existing(target)
    for what, given, found in (
        ("UID", options.uid, live.meta["uid"]),
        ("ResourceVersion", options.version, live.meta["resourceVersion"]),
    ):
        if given and given != found:
            why = f"the {what} in the precondition ({given}) does not match the {what} in record ({found})"
            raise conflict(kind, live.meta["name"], why)
    new = live.fresh()
    meta, grace = new["metadata"], _grace(kind, new, options)
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


def _grace(kind: ServedKind, obj: Obj, options: DeleteOptions) -> int:
    """Seconds: only pods that run on a node have any."""
    ended = nested(obj, "status", "phase") in ("Succeeded", "Failed")
    if kind.key != _PODS or ended or not nested(obj, "spec", "nodeName"):
        return 0
    given = nested(obj, "spec", "terminationGracePeriodSeconds") if options.grace is None else options.grace
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
            delete_object(self._state, RequestTarget(kind, key[0], key[1]), DeleteOptions())


def _owners(row: StoredObject) -> list[str]:
    return [ref["uid"] for ref in row.meta.get("ownerReferences") or ()]
