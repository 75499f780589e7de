"""DELETE with preconditions, grace and finalizers; binding and eviction of pods."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from jobset_gate.fake.apiserver.kinds import NAMESPACES, ServedKind
from jobset_gate.fake.apiserver.reads import matching
from jobset_gate.fake.apiserver.requests import ApiRequest, RequestTarget, ServerState, parse_body
from jobset_gate.fake.apiserver.responses import (
    ApiResponse,
    Obj,
    bad_request,
    conflict,
    dig,
    encode,
    no_such_path,
    not_allowed,
    seconds,
    timestamp,
)
from jobset_gate.fake.apiserver.store import StoredObject

FOREGROUND = "foregroundDeletion"
_DEFAULT_GRACE = 30
_PODS = ("", "pods")
_POLICIES = {"": (), "Background": (), "Foreground": (FOREGROUND,)}
_CREATED = encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """grace: seconds, None for the object's own."""

    uid: str = ""
    version: str = ""
    propagation: str = ""
    grace: int | None = None


def _options(body: Any, query: Mapping[str, str]) -> DeleteOptions:
    """From body and query; the body wins. Errors: StatusError 400."""
    body = body if isinstance(body, dict) else {}
    grace = query.get("gracePeriodSeconds", "")
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy", "")
    if propagation not in _POLICIES:
        raise bad_request(f"propagationPolicy: Unsupported value: {propagation!r}")
    conditions = body.get("preconditions") or {}
    return DeleteOptions(
        conditions.get("uid") or "",
        conditions.get("resourceVersion") or "",
        propagation,
        body.get("gracePeriodSeconds", int(grace) if grace.isdigit() else None),
    )


async def delete(state: ServerState, request: ApiRequest) -> ApiResponse:
    if not request.target.name or request.target.subresource:
        raise not_allowed()
    return await delete_one(state, request, _options(parse_body(request) if request.body else {}, request.query))


async def delete_one(state: ServerState, request: ApiRequest, options: DeleteOptions) -> ApiResponse:
    kind = request.kind
    live = state.existing(request.target)
    _require_preconditions(kind, live, options)
    await state.admission.deletion(request, live.fresh())
    live = state.existing(request.target)
    _require_preconditions(kind, live, options)
    if request.dry_run:
        return ApiResponse(200, _success(kind, live))
    left = _erase(state, kind, live, options)
    gone = state.store.row(kind, *left.key) is None
    return ApiResponse(200, _success(kind, live) if gone and kind.key != _PODS else left.raw)


async def delete_collection(state: ServerState, request: ApiRequest) -> ApiResponse:
    options = _options(parse_body(request) if request.body else {}, request.query)
    found = matching(state, request)
    for row in found:
        namespace, name = row.key
        target = RequestTarget(request.kind, namespace or None, name)
        if state.store.row(request.kind, namespace, name):
            await delete_one(state, ApiRequest("delete", target, request.query, agent=request.agent), options)
    items = b",".join(row.raw for row in found)
    head = encode({"kind": f"{request.kind.kind}List", "apiVersion": request.kind.api_version})
    body = b'%s,"metadata":{"resourceVersion":"%d"},"items":[%s]}' % (head[:-1], state.store.revision, items)
    return ApiResponse(200, body)


def _require_preconditions(kind: ServedKind, live: StoredObject, options: DeleteOptions) -> None:
    meta = live.meta
    for what, given, found in (
        ("UID", options.uid, meta["uid"]),
        ("ResourceVersion", options.version, meta["resourceVersion"]),
    ):
        if given and given != found:
            why = f"the {what} in the precondition ({given}) does not match the {what} in record ({found})"
            raise conflict(kind, meta["name"], why, kind.kind)


def _erase(state: ServerState, kind: ServedKind, live: StoredObject, options: DeleteOptions) -> StoredObject:
    """Delete, or set the deletion timestamp while finalizers or a kubelet still have work; the last state."""
    new = live.fresh()
    meta = new["metadata"]
    if options.propagation:
        kept = [name for name in meta.get("finalizers") or () if name != FOREGROUND]
        meta["finalizers"] = [*kept, *_POLICIES[options.propagation]]
    if not meta.get("finalizers"):
        meta.pop("finalizers", None)
    grace = _grace(kind, new, options)
    namespace_waits = False
    if kind.key == NAMESPACES.key:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
        namespace_waits = bool(dig(new, "spec", "finalizers"))
    if meta.get("finalizers") or grace > 0 or namespace_waits:
        _set_deletion_timestamp(state, meta, grace)
        return live if encode(new) == live.raw else state.store.commit(kind, new)
    if "deletionGracePeriodSeconds" in meta:
        meta["deletionGracePeriodSeconds"] = 0
    return state.store.remove(kind, new)


def _set_deletion_timestamp(state: ServerState, meta: Obj, grace: int) -> None:
    """Set it, or bring it forward."""
    when = state.clock() + grace
    marked = meta.get("deletionTimestamp")
    if marked and (grace >= (meta.get("deletionGracePeriodSeconds") or 0) or seconds(marked) <= when):
        return
    if not marked and "generation" in meta:
        meta["generation"] += 1
    meta["deletionTimestamp"] = timestamp(when)
    meta["deletionGracePeriodSeconds"] = grace


def _grace(kind: ServedKind, obj: Obj, options: DeleteOptions) -> int:
    """Seconds: only pods that run on a node have any."""
    ended = dig(obj, "status", "phase") in ("Succeeded", "Failed")
    if kind.key != _PODS or ended or not dig(obj, "spec", "nodeName"):
        return 0
    given = dig(obj, "spec", "terminationGracePeriodSeconds") if options.grace is None else options.grace
    return max(0, int(_DEFAULT_GRACE if given is None else given))


def _success(kind: ServedKind, live: StoredObject) -> bytes:
    meta = live.meta
    details = {"name": meta["name"], "kind": kind.plural, "uid": meta["uid"]}
    if kind.group:
        details["group"] = kind.group
    return encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})


# --- Subresources of pods ---------------------------------------------------------------------------------------------


async def post_subresource(state: ServerState, request: ApiRequest) -> ApiResponse:
    match request.kind.key, request.target.subresource:
        case (("", "pods"), "binding"):
            return _bind(state, request)
        case (("", "pods"), "eviction"):
            body = parse_body(request)
            await delete_one(state, request, _options(dig(body, "deleteOptions"), request.query))
            return ApiResponse(201, _CREATED)
        case _:
            raise no_such_path()


def _bind(state: ServerState, request: ApiRequest) -> ApiResponse:
    """Set the node of a pod. Errors: StatusError 409 for a pod that is bound, gated or being deleted."""
    body = parse_body(request)
    node = dig(body, "target", "name")
    if not node:
        raise bad_request("target.name: Required value")
    pod = state.existing(request.target).fresh()
    meta, spec, name = pod["metadata"], pod["spec"], request.target.name or ""
    why = ""
    if dig(body, "metadata", "uid") not in (None, "", meta["uid"]):
        why = f"Precondition failed: UID in object meta: {meta['uid']}"
    elif meta.get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif spec.get("nodeName"):
        why = f'pod {name} is already assigned to node "{spec["nodeName"]}"'
    elif spec.get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict(request.kind, name, why, "pods/binding")
    spec["nodeName"] = node
    others = [item for item in dig(pod, "status", "conditions") or () if item["type"] != "PodScheduled"]
    bound = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": state.now()}
    pod.setdefault("status", {})["conditions"] = [*others, bound]
    state.store.commit(request.kind, pod)
    return ApiResponse(201, _CREATED)
