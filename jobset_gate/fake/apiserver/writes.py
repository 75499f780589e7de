"""CREATE, UPDATE and PATCH: from a request body to the store."""

from __future__ import annotations

from collections.abc import Callable

from jobset_gate.fake.apiserver import deletes, patches, reviews, rules
from jobset_gate.fake.apiserver.kinds import NAMESPACES, ServedKind, prune
from jobset_gate.fake.apiserver.requests import ApiRequest, ServerState, parse_body, whole_object, with_identity
from jobset_gate.fake.apiserver.responses import (
    ApiResponse,
    Obj,
    StatusError,
    already_exists,
    bad_request,
    cause,
    conflict,
    copy,
    encode,
    invalid,
    no_such_path,
    not_allowed,
    not_found,
)
from jobset_gate.fake.apiserver.store import StoredObject

Build = Callable[[StoredObject], Obj]
"""Makes the wanted object out of the live one."""
_TRIES = 6


async def create(state: ServerState, request: ApiRequest) -> ApiResponse:
    if request.target.subresource:
        return await deletes.bind(state, request)
    if request.target.name:
        raise not_allowed()
    if reviews.is_review(request.kind):
        return reviews.review(request)
    return await _create(state, request, whole_object(request, parse_body(request)))


async def _create(state: ServerState, request: ApiRequest, obj: Obj) -> ApiResponse:
    """Store a new object."""
    kind, meta = request.kind, obj["metadata"]
    if kind.namespaced:
        if not meta.get("namespace"):
            raise bad_request("namespace is required")
        if state.store.row(NAMESPACES, "", meta["namespace"]) is None:
            raise not_found(NAMESPACES, meta["namespace"])
    if meta.get("resourceVersion"):
        raise StatusError(500, "resourceVersion should not be set on objects to be created", reason="")
    _normalize(request, obj)
    obj = await state.admission.mutate(request, "CREATE", obj, None)
    _normalize(request, obj)
    meta = obj["metadata"]
    if meta.get("generateName") and not meta.get("name"):
        meta["name"] = state.new_name(meta["generateName"])
    rules.fill_metadata(state, kind, obj)
    rules.prepare(kind, obj, state.now())
    await state.admission.validate(request, "CREATE", obj, None)
    if state.store.row(kind, meta.get("namespace", ""), meta["name"]):
        raise already_exists(kind, meta["name"])
    if request.dry_run:
        return ApiResponse(201, encode(with_identity(kind, obj)))
    return ApiResponse(201, state.store.commit(kind, obj).raw)


async def update(state: ServerState, request: ApiRequest) -> ApiResponse:
    _require_object(request)
    kind, obj = request.kind, whole_object(request, parse_body(request))
    if (kind.custom or kind.plural == "leases") and not obj["metadata"].get("resourceVersion"):
        why = "Invalid value: 0: must be specified for an update"
        raise invalid(kind, request.target.name or "", [cause("metadata.resourceVersion", why)])
    return await _change(state, request, lambda _: copy(obj))


async def patch(state: ServerState, request: ApiRequest) -> ApiResponse:
    target = request.target
    _require_object(request)
    body = patches.read_patch(request)
    exists = state.store.row(request.kind, target.namespace or "", target.name or "") is not None
    if request.media_type == patches.APPLY and not exists and not target.subresource:
        body["metadata"]["name"] = target.name
        return await _create(state, request, body)
    return await _change(state, request, lambda live: patches.patched(request, body, live.fresh()))


def _require_object(request: ApiRequest) -> None:
    """Errors: StatusError 405 without a name, 404 for a subresource that cannot be updated."""
    if not request.target.name:
        raise not_allowed()
    name = request.target.subresource
    if name and not (name == "status" and request.kind.status):
        raise no_such_path()


async def _change(state: ServerState, request: ApiRequest, build: Build) -> ApiResponse:
    """Change an object; try again after a concurrent write unless the request names a version."""
    name = request.target.name or ""
    for _ in range(_TRIES):
        live = state.existing(request.target)
        wanted = build(live)
        given = wanted["metadata"].get("name")
        if given != name:
            raise bad_request(f"the name of the object ({given}) does not match the name on the URL ({name})")
        if request.verb == "patch":
            _require_same_uid(request, wanted, live)
        response = await _commit(state, request, live, wanted)
        if response is not None:
            return response
    raise conflict(request.kind, name)


def _require_same_uid(request: ApiRequest, wanted: Obj, live: StoredObject) -> None:
    """A patch with another uid is invalid, where an update conflicts; the status of a custom kind ignores it."""
    if request.kind.custom and request.target.subresource == "status":
        wanted["metadata"]["uid"] = live.meta["uid"]
    uid = wanted["metadata"].get("uid")
    if uid not in (None, live.meta["uid"]):
        why = f'Invalid value: "{uid}": field is immutable'
        raise invalid(request.kind, request.target.name or "", [cause("metadata.uid", why)])


async def _commit(state: ServerState, request: ApiRequest, live: StoredObject, new: Obj) -> ApiResponse | None:
    """None when the live object changed meanwhile."""
    kind, target = request.kind, request.target
    name = target.name or ""
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
