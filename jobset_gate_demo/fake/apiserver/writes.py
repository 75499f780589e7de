"""CREATE, UPDATE and PATCH: from a request body to the store; bindings of pods; reviews, which are answered only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from jobset_gate.objects.unstructured import as_list, as_map, nested
from jobset_gate_demo.fake.apiserver import patches, rules
from jobset_gate_demo.fake.apiserver.kinds import ServedKind, prune
from jobset_gate_demo.fake.apiserver.requests import ApiRequest, ServerState, body_object, with_identity
from jobset_gate_demo.fake.apiserver.responses import (
    ApiResponse,
    Obj,
    already_exists,
    conflict,
    copy,
    decode,
    encode,
    invalid,
)
from jobset_gate_demo.fake.apiserver.store import StoredObject

TOKEN: Final = "demo"  # noqa: S105 - it protects nothing: the server asks nobody for a token
USER: Final = "demo"
"""Whose token that is; he may do everything."""

_REVIEWS: Final = ("authentication.k8s.io", "authorization.k8s.io")
_TRIES: Final = 6


async def create(state: ServerState, request: ApiRequest) -> ApiResponse:
    if request.target.subresource == "binding":
        return _bind(state, request)
    obj = body_object(request)
    return _review(request, obj) if request.kind.group in _REVIEWS else await _create(state, request, obj)


async def _create(state: ServerState, request: ApiRequest, obj: Obj) -> ApiResponse:
    """Store a new object."""
    kind = request.kind
    _normalize(request, obj)
    obj = await state.admission.mutate(request, "CREATE", obj, None)
    _normalize(request, obj)
    rules.fill_metadata(state, kind, obj)
    rules.prepare(kind, obj, state.now())
    await state.admission.validate(request, "CREATE", obj, None)
    meta = obj["metadata"]
    if state.store.row(kind, meta.get("namespace", ""), meta["name"]):
        raise already_exists(kind, meta["name"])
    if request.dry_run:
        return ApiResponse(201, encode(with_identity(kind, obj)))
    return ApiResponse(201, state.store.commit(kind, obj).raw)


def _review(request: ApiRequest, body: Obj) -> ApiResponse:
    """TokenReview and SubjectAccessReview: there is one token, and its user may do everything."""
    spec, status = as_map(body.get("spec")), Obj()
    if request.kind.plural != "tokenreviews":
        status = {"allowed": spec.get("user") == USER}
    elif spec.get("token") == TOKEN:
        user = {"username": USER, "uid": USER, "groups": ["system:authenticated"]}
        status = {"authenticated": True, "user": user}
    return ApiResponse(201, encode(with_identity(request.kind, {**body, "status": status})))


def _bind(state: ServerState, request: ApiRequest) -> ApiResponse:
    """Set the node of a pod. Errors: StatusError 409 for a pod that is bound or gated."""
    pod = state.existing(request.target).fresh()
    spec = pod["spec"]
    if spec.get("nodeName"):
        why = f'pod {request.name} is already assigned to node "{spec["nodeName"]}"'
        raise conflict(request.kind, request.name, why)
    if spec.get("schedulingGates"):
        raise conflict(request.kind, request.name, f"pod {request.name} has non-empty .spec.schedulingGates")
    spec["nodeName"] = decode(request.body)["target"]["name"]
    others = [item for item in as_list(nested(pod, "status", "conditions")) if item["type"] != "PodScheduled"]
    bound = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": state.now()}
    pod["status"]["conditions"] = [*others, bound]
    return ApiResponse(201, state.store.commit(request.kind, pod).raw)


async def update(state: ServerState, request: ApiRequest) -> ApiResponse:
    obj = body_object(request)
    return await _change(state, request, lambda _: copy(obj))


async def patch(state: ServerState, request: ApiRequest) -> ApiResponse:
    target, sort = request.target, request.media_type
    body = body_object(request) if sort == patches.APPLY else decode(request.body)
    row = state.store.row(request.kind, target.namespace or "", request.name)
    if sort == patches.APPLY and row is None and not target.subresource:
        return await _create(state, request, body)
    return await _change(state, request, lambda live: _patched(request, body, live))


def _patched(request: ApiRequest, body: Obj, live: StoredObject) -> Obj:
    """A patch with another uid is invalid, where an update conflicts; the status of a custom kind ignores it."""
    wanted: Obj = patches.patched(request.media_type, body, live.fresh())
    if request.kind.custom and request.target.subresource == "status":
        wanted["metadata"]["uid"] = live.meta["uid"]
    if wanted["metadata"]["uid"] != live.meta["uid"]:
        raise invalid(request.kind, request.name, "metadata.uid", "field is immutable")
    return wanted


async def _change(state: ServerState, request: ApiRequest, build: Callable[[StoredObject], Obj]) -> ApiResponse:
    """Change an object; try again after a concurrent write unless the request names a version."""
    for _ in range(_TRIES):
        live = state.existing(request.target)
        response = await _commit(state, request, live, build(live))
        if response is not None:
            return response
    raise conflict(request.kind, request.name)


async def _commit(state: ServerState, request: ApiRequest, live: StoredObject, new: Obj) -> ApiResponse | None:
    """None when the live object changed meanwhile."""
    kind, target, name = request.kind, request.target, request.name
    old, new = live.fresh(), with_identity(kind, new)
    rules.keep_system_metadata(kind, new, old, name)
    _normalize(request, new)
    new = await state.admission.mutate(request, "UPDATE", new, old)
    _normalize(request, new)
    rules.keep_system_metadata(kind, new, old, name)
    new = _confine(kind, new, old, target.subresource)
    rules.count_generation(kind, new, old)
    await state.admission.validate(request, "UPDATE", new, old)
    if state.store.row(kind, target.namespace or "", name) is not live:
        return None
    if new == old:
        return ApiResponse(200, live.raw)
    if request.dry_run:
        return ApiResponse(200, encode(with_identity(kind, new)))
    rules.date_write(kind, new, state.now())
    meta = new["metadata"]
    gone = meta.get("deletionTimestamp") and not meta.get("deletionGracePeriodSeconds") and not meta.get("finalizers")
    return ApiResponse(200, (state.store.remove if gone else state.store.commit)(kind, new).raw)


def _normalize(request: ApiRequest, obj: Obj) -> None:
    """Prune unknown fields, drop empty metadata, fill in defaults."""
    if request.kind.schema is not None:
        for path in prune(obj, request.kind.schema):
            request.warn(f'unknown field "{path}"')
    rules.drop_empty_metadata(obj)
    rules.default(request.kind, obj)


def _confine(kind: ServedKind, new: Obj, live: Obj, subresource: str) -> Obj:
    """The status endpoint writes the status (of built-in kinds labels and annotations, too), the main one the rest."""
    if subresource != "status":
        if not kind.status:
            return new
        kept = {key: value for key, value in new.items() if key != "status"}
        return {**kept, "status": live["status"]} if "status" in live else kept
    kept = {key: value for key, value in live.items() if key not in ("status", "metadata")}
    if "status" in new:
        kept["status"] = new["status"]
    meta = dict(live["metadata"]) if kind.custom else {**new["metadata"], "ownerReferences": None}
    if owners := live["metadata"].get("ownerReferences"):
        meta["ownerReferences"] = owners
    kept["metadata"] = {name: value for name, value in meta.items() if value is not None}
    return kept
