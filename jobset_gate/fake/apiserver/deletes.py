"""DELETE with preconditions, grace and finalizers; and the garbage collector of kube-controller-manager.

Dependents go when all their owners are gone, in the background only: another propagation policy is not played.
"""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.requests import ApiRequest, RequestTarget, ServerState, parse_body
from jobset_gate.fake.apiserver.responses import (
    ApiResponse,
    Obj,
    StatusError,
    bad_request,
    conflict,
    encode,
    no_such_path,
    not_allowed,
)
from jobset_gate.fake.apiserver.store import Key, StoredObject, StoreEvent
from jobset_gate.fake.objects import stamp
from jobset_gate.objects.unstructured import nested

_DEFAULT_GRACE = 30
_PODS = ("", "pods")
_CREATED = encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """grace: seconds, None for the object's own."""

    uid: str = ""
    version: str = ""
    grace: int | None = None


def _options(body: Any) -> DeleteOptions:
    conditions = nested(body, "preconditions") or {}
    return DeleteOptions(
        conditions.get("uid") or "", conditions.get("resourceVersion") or "", nested(body, "gracePeriodSeconds")
    )


async def delete(state: ServerState, request: ApiRequest) -> ApiResponse:
    if not request.target.name or request.target.subresource:
        raise not_allowed()
    return await delete_object(state, request, _options(parse_body(request) if request.body else {}))


async def delete_object(state: ServerState, request: ApiRequest, options: DeleteOptions) -> ApiResponse:
    """Delete, or set the deletion timestamp while finalizers or a kubelet have work; answers with the last state."""
    kind, live = request.kind, state.existing(request.target)
    _require_preconditions(kind, live, options)
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


def _require_preconditions(kind: ServedKind, live: StoredObject, options: DeleteOptions) -> None:
    meta = live.meta
    for what, given, found in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.version, meta["resourceVersion"]),
    ):
        if given and given != found:
            why = f"the {what} in the precondition ({given}) does not match the {what} in record ({found})"
            raise conflict(kind, meta["name"], why)


def _grace(kind: ServedKind, obj: Obj, options: DeleteOptions) -> int:
    """Seconds: only pods that run on a node have any."""
    ended = nested(obj, "status", "phase") in ("Succeeded", "Failed")
    if kind.key != _PODS or ended or not nested(obj, "spec", "nodeName"):
        return 0
    given = nested(obj, "spec", "terminationGracePeriodSeconds") if options.grace is None else options.grace
    return max(0, int(_DEFAULT_GRACE if given is None else given))


async def bind(state: ServerState, request: ApiRequest) -> ApiResponse:
    """Set the node of a pod. Errors: StatusError 409 for a pod that is bound, gated or being deleted."""
    if (request.kind.key, request.target.subresource) != (_PODS, "binding"):
        raise no_such_path()
    body = parse_body(request)
    node = nested(body, "target", "name")
    if not node:
        raise bad_request("target.name: Required value")
    pod = state.existing(request.target).fresh()
    meta, spec, name = pod["metadata"], pod["spec"], request.target.name or ""
    why = ""
    if nested(body, "metadata", "uid") not in (None, "", meta["uid"]):
        why = f"Precondition failed: UID in object meta: {meta['uid']}"
    elif meta.get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict(request.kind, name, why)
    spec["nodeName"] = node
    others = [item for item in nested(pod, "status", "conditions") or () if item["type"] != "PodScheduled"]
    bound = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": state.now()}
    pod.setdefault("status", {})["conditions"] = [*others, bound]
    state.store.commit(request.kind, pod)
    return ApiResponse(201, _CREATED)


_log = logging.getLogger(__name__)

Place = tuple[tuple[str, str], Key]
"""One object: its kind's group and plural, its namespace and name."""


class GarbageCollector:
    """`run()` until cancelled."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        self._kinds: dict[tuple[str, str], ServedKind] = {}
        self._live: set[str] = set()
        self._dependents: defaultdict[str, dict[Place, None]] = defaultdict(dict)
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
                await self._collect(*place)

    def _on_change(self, kind: ServedKind, change: StoreEvent) -> None:
        self._kinds[kind.key] = kind
        place, uid = (kind.key, change.now.key), change.now.meta.get("uid", "")
        if change.deleted:
            self._live.discard(uid)
            self._due |= self._dependents.pop(uid, {})
        else:
            self._live.add(uid)
            owners = _owners(change.now)
            for owner in owners:
                self._dependents[owner][place] = None
            if owners and self._live.isdisjoint(owners):
                self._due[place] = None
        if self._due:
            self._wake.set()

    async def _collect(self, kind: tuple[str, str], key: Key) -> None:
        row = self._state.store.row(self._kinds[kind], *key)
        owners = _owners(row) if row else []
        if row is None or not owners or not self._live.isdisjoint(owners):
            return
        request = ApiRequest("delete", RequestTarget(self._kinds[kind], key[0] or None, key[1]))
        try:
            await delete_object(self._state, request, DeleteOptions(uid=row.meta["uid"]))
        except StatusError as error:
            _log.debug("garbage collection of %s %s: %s", kind, key, error.message)


def _owners(row: StoredObject) -> list[str]:
    return [ref["uid"] for ref in row.meta.get("ownerReferences") or ()]
