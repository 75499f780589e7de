"""DELETE: preconditions, grace for running pods, finalizers, and what becomes of dependents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from jobset_gate.fake.apiserver import bodies
from jobset_gate.fake.apiserver.encoding import Obj, dig, encode, seconds, timestamp
from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.namespaces import NAMESPACE
from jobset_gate.fake.apiserver.reads import matching
from jobset_gate.fake.apiserver.requests import ApiRequest, RequestTarget
from jobset_gate.fake.apiserver.state import ApiResponse, ServerState
from jobset_gate.fake.apiserver.status_errors import bad_request, conflict, not_allowed
from jobset_gate.fake.apiserver.store import StoredObject

FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
_DEFAULT_GRACE = 30
#: Kinds whose deletion is answered with the object.
_RETURNED = frozenset([("", "pods")])
_POLICIES = ("", "Background", "Foreground", "Orphan")


@dataclass(frozen=True, slots=True)
class DeleteOptions:
    """DeleteOptions. grace: seconds, None for the object's own."""

    uid: str = ""
    version: str = ""
    propagation: str = ""
    grace: int | None = None


def read_options(call: ApiRequest) -> DeleteOptions:
    """From body and query; the body wins. Errors: Problem 400."""
    body = bodies.parse(call) if call.body else {}
    return options_of(body if isinstance(body, dict) else {}, call.query)


def options_of(body: Obj, query: Mapping[str, str]) -> DeleteOptions:
    asked = query.get("gracePeriodSeconds", "")
    grace = body.get("gracePeriodSeconds", int(asked) if asked.isdigit() else None)
    propagation = body.get("propagationPolicy") or query.get("propagationPolicy", "")
    if propagation not in _POLICIES:
        raise bad_request(f"propagationPolicy: Unsupported value: {propagation!r}")
    conditions = body.get("preconditions") or {}
    return DeleteOptions(conditions.get("uid") or "", conditions.get("resourceVersion") or "", propagation, grace)


async def delete(core: ServerState, call: ApiRequest) -> ApiResponse:
    target = call.target
    if not target.name or target.subresource:
        raise not_allowed()
    return await delete_one(core, call, read_options(call))


async def delete_one(core: ServerState, call: ApiRequest, options: DeleteOptions) -> ApiResponse:
    kind, target = call.kind, call.target
    live = core.existing(kind, target.namespace, target.name)
    _require(kind, live, options)
    await core.admission.deletion(call, live.fresh())
    live = core.existing(kind, target.namespace, target.name)
    _require(kind, live, options)
    if call.dry_run:
        return ApiResponse(200, _success(kind, live))
    left = erase(core, kind, live, options)
    gone = core.store.row(kind, *left.key) is None
    return ApiResponse(200, _success(kind, live) if gone and kind.key not in _RETURNED else left.raw)


async def delete_collection(core: ServerState, call: ApiRequest) -> ApiResponse:
    options = read_options(call)
    found = matching(core, call)
    for row in found:
        namespace, name = row.key
        one = ApiRequest("delete", RequestTarget(call.kind, namespace or None, name), call.query, agent=call.agent)
        if core.store.row(call.kind, namespace, name):
            await delete_one(core, one, options)
    items = b",".join(row.raw for row in found)
    head = encode({"kind": f"{call.kind.kind}List", "apiVersion": call.kind.api_version})
    return ApiResponse(
        200, b'%s,"metadata":{"resourceVersion":"%d"},"items":[%s]}' % (head[:-1], core.store.revision, items)
    )


def _require(kind: ServedKind, live: StoredObject, options: DeleteOptions) -> None:
    meta = live.meta
    if options.uid and options.uid != meta["uid"]:
        why = f"the UID in the precondition ({options.uid}) does not match the UID in record ({meta['uid']}). "
        raise conflict(kind, meta["name"], why + "The object might have been deleted and then recreated", kind.kind)
    if options.version and options.version != meta["resourceVersion"]:
        why = (
            f"the ResourceVersion in the precondition ({options.version}) does not match the ResourceVersion in record "
        )
        why = f"{why}({meta['resourceVersion']}). The object might have been modified"
        raise conflict(kind, meta["name"], why, kind.kind)


def erase(core: ServerState, kind: ServedKind, live: StoredObject, options: DeleteOptions) -> StoredObject:
    """Delete, or mark as being deleted where a finalizer or a kubelet still has work; the last state."""
    new = live.fresh()
    meta = new["metadata"]
    finalizers = _finalizers(meta.get("finalizers") or [], options.propagation)
    grace = _grace(kind, new, options)
    if kind.key == NAMESPACE.key:
        new["status"] = {**(new.get("status") or {}), "phase": "Terminating"}
    waits = bool(finalizers) or grace > 0 or bool(kind.key == NAMESPACE.key and dig(new, "spec", "finalizers"))
    if finalizers:
        meta["finalizers"] = finalizers
    else:
        meta.pop("finalizers", None)
    if not waits:
        if "deletionGracePeriodSeconds" in meta:
            meta["deletionGracePeriodSeconds"] = 0
        return core.store.remove(kind, new)
    _mark(core, meta, grace)
    return live if encode(new) == live.raw else core.store.commit(kind, new)


def _mark(core: ServerState, meta: Obj, grace: int) -> None:
    """Set the deletion's time, or bring it forward."""
    when = core.clock() + grace
    marked = meta.get("deletionTimestamp")
    if marked and (grace >= (meta.get("deletionGracePeriodSeconds") or 0) or seconds(marked) <= when):
        return
    if not marked and "generation" in meta:
        meta["generation"] += 1
    meta["deletionTimestamp"] = timestamp(when)
    meta["deletionGracePeriodSeconds"] = grace


def _finalizers(present: list[str], propagation: str) -> list[str]:
    if not propagation:
        return present
    kept = [name for name in present if name not in (FOREGROUND, ORPHAN)]
    return kept + {"Foreground": [FOREGROUND], "Orphan": [ORPHAN]}.get(propagation, [])


def _grace(kind: ServedKind, obj: Obj, options: DeleteOptions) -> int:
    """Seconds: only pods that run on a node are given any."""
    if kind.key != ("", "pods") or not dig(obj, "spec", "nodeName"):
        return 0
    if dig(obj, "status", "phase") in ("Succeeded", "Failed"):
        return 0
    own = dig(obj, "spec", "terminationGracePeriodSeconds")
    given = options.grace if options.grace is not None else own
    return max(0, int(_DEFAULT_GRACE if given is None else given))


def _success(kind: ServedKind, live: StoredObject) -> bytes:
    meta = live.meta
    details = {"name": meta["name"], "kind": kind.plural, "uid": meta["uid"]}
    if kind.group:
        details["group"] = kind.group
    return encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "details": details})
