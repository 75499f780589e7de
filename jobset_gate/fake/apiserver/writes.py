"""CREATE, UPDATE and PATCH: the way of an object from a request body into the store."""

from __future__ import annotations

from collections.abc import Callable

from jobset_gate.fake.apiserver import bodies, custom, managed, meta, namespaces, patches, rules, subresources
from jobset_gate.fake.apiserver.encoding import Obj, copy, encode
from jobset_gate.fake.apiserver.managed import FieldManager
from jobset_gate.fake.apiserver.requests import ApiRequest
from jobset_gate.fake.apiserver.state import ApiResponse, ServerState, with_identity
from jobset_gate.fake.apiserver.status_errors import (
    StatusError,
    already_exists,
    bad_request,
    cause,
    conflict,
    invalid,
    not_allowed,
)
from jobset_gate.fake.apiserver.store import StoredObject

#: Makes the wanted object out of the live one.
Build = Callable[[StoredObject], Obj]
_TRIES = 6


async def create(core: ServerState, call: ApiRequest) -> ApiResponse:
    if call.target.subresource:
        return await subresources.post(core, call)
    if call.target.name:
        raise not_allowed()
    return await make(core, call, bodies.whole_object(call))


async def make(core: ServerState, call: ApiRequest, obj: Obj, *, applied: bool = False) -> ApiResponse:
    """Store a new object. `applied`: its managedFields are already right."""
    kind = call.kind
    if kind.namespaced and not obj["metadata"].get("namespace"):
        raise bad_request("namespace is required")
    if obj["metadata"].get("resourceVersion"):
        raise StatusError(500, "resourceVersion should not be set on objects to be created", reason="")
    namespaces.require_open(core, kind, call.target.namespace, obj["metadata"].get("name", ""))
    _accept(call, obj)
    obj = await core.admission.mutate(call, "CREATE", obj, None)
    _accept(call, obj)
    if not applied:
        managed.track(None, obj, _manager(call), kind.shape, now=core.now(), without=_unowned(call))
    stem = obj["metadata"].get("generateName")
    if stem and not obj["metadata"].get("name"):
        obj["metadata"]["name"] = core.new_name(stem)
    meta.fill(core, kind, obj)
    _require_sound(call, obj, None)
    rules.prepare(kind, obj, core.now())
    await core.admission.validate(call, "CREATE", obj, None)
    name = obj["metadata"]["name"]
    if core.store.row(kind, obj["metadata"].get("namespace", ""), name):
        raise already_exists(kind, name)
    if call.dry_run:
        return ApiResponse(201, encode(with_identity(kind, obj)))
    return ApiResponse(201, core.store.commit(kind, obj).raw)


async def update(core: ServerState, call: ApiRequest) -> ApiResponse:
    if not call.target.name:
        raise not_allowed()
    subresources.require(call)
    obj = bodies.whole_object(call)
    name = obj["metadata"].get("name")
    if name != call.target.name:
        raise bad_request(f"the name of the object ({name}) does not match the name on the URL ({call.target.name})")
    _require_version(call, obj)
    return await change(core, call, lambda _: copy(obj))


def _require_version(call: ApiRequest, obj: Obj) -> None:
    """Custom objects and Leases are never replaced blindly."""
    strict = call.kind.custom or call.kind.group == "coordination.k8s.io"
    if strict and not obj["metadata"].get("resourceVersion"):
        why = "Invalid value: 0: must be specified for an update"
        raise invalid(call.kind, call.target.name or "", [cause("metadata.resourceVersion", why)], call.kind.plural)


async def patch(core: ServerState, call: ApiRequest) -> ApiResponse:
    target = call.target
    if not target.name:
        raise not_allowed()
    subresources.require(call)
    how = patches.reader(core, call)
    if (
        how.applies
        and core.store.row(call.kind, target.namespace or "", target.name) is None
        and not target.subresource
    ):
        return await make(core, call, how.new_object(), applied=True)
    return await change(core, call, how, applied=how.applies)


async def change(core: ServerState, call: ApiRequest, build: Build, *, applied: bool = False) -> ApiResponse:
    """Change an object; begin again when another writer was faster and the request names no version."""
    for _ in range(_TRIES):
        live = core.existing(call.kind, call.target.namespace, call.target.name)
        wanted = build(live)
        if wanted["metadata"].get("name", call.target.name) != call.target.name:
            given = wanted["metadata"].get("name")
            raise bad_request(
                f"the name of the object ({given}) does not match the name on the URL ({call.target.name})"
            )
        if call.verb == "patch":
            _require_same_uid(call, wanted, live)
        answer = await _settle(core, call, live, wanted, applied=applied)
        if answer is not None:
            return answer
    raise conflict(call.kind, call.target.name or "")


def _require_same_uid(call: ApiRequest, wanted: Obj, live: StoredObject) -> None:
    """A patch may not name another uid; an update may, and conflicts.

    Of a patch of a custom object's status nothing in metadata is looked at but the resourceVersion.
    """
    if call.kind.custom and call.target.subresource == "status":
        wanted["metadata"]["uid"] = live.meta["uid"]
    uid = wanted["metadata"].get("uid")
    if uid not in (None, live.meta["uid"]):
        why = f'Invalid value: "{uid}": field is immutable'
        raise invalid(call.kind, call.target.name or "", [cause("metadata.uid", why)])


async def _settle(
    core: ServerState, call: ApiRequest, live: StoredObject, new: Obj, *, applied: bool
) -> ApiResponse | None:
    """None when the live object changed meanwhile."""
    kind, target = call.kind, call.target
    old, new = live.fresh(), with_identity(kind, new)
    meta.keep(kind, new, old, target.name or "")
    _accept(call, new)
    new = await core.admission.mutate(call, "UPDATE", new, old)
    _accept(call, new)
    meta.keep(kind, new, old, target.name or "")
    new = rules.confine(kind, new, old, target.subresource)
    meta.count_generation(kind, new, old)
    _require_sound(call, new, old)
    if not applied:
        managed.track(old, new, _manager(call), kind.shape, now=core.now(), without=_unowned(call))
    await core.admission.validate(call, "UPDATE", new, old)
    if core.store.row(kind, target.namespace or "", target.name or "") is not live:
        return None
    return ApiResponse(200, live.raw) if new == old else _store(core, call, new)


def _store(core: ServerState, call: ApiRequest, new: Obj) -> ApiResponse:
    if call.dry_run:
        return ApiResponse(200, encode(with_identity(call.kind, new)))
    going = new["metadata"].get("deletionTimestamp") and not new["metadata"].get("deletionGracePeriodSeconds")
    if going and not new["metadata"].get("finalizers"):
        return ApiResponse(200, core.store.remove(call.kind, new).raw)
    return ApiResponse(200, core.store.commit(call.kind, new).raw)


def _accept(call: ApiRequest, obj: Obj) -> None:
    """Drop or refuse unknown fields, fill in defaults."""
    custom.prune(call, obj)
    meta.trim(obj)
    rules.default(call.kind, obj)


def _require_sound(call: ApiRequest, new: Obj, old: Obj | None) -> None:
    kind = call.kind
    found = [*meta.problems(kind, new), *rules.check(kind, new, old)]
    if found:
        raise invalid(kind, new["metadata"].get("name", ""), found)


def _manager(call: ApiRequest) -> FieldManager:
    return FieldManager(call.manager, "Update", call.kind.api_version, call.target.subresource)


def _unowned(call: ApiRequest) -> tuple[str, ...]:
    return patches.unowned(call.kind, call.target.subresource)
