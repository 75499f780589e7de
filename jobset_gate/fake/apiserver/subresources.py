"""The subresources that are not plain updates: binding and eviction of pods."""

from __future__ import annotations

from jobset_gate.fake.apiserver import bodies, deletes
from jobset_gate.fake.apiserver.encoding import Obj, dig, encode
from jobset_gate.fake.apiserver.requests import ApiRequest
from jobset_gate.fake.apiserver.state import ApiResponse, ServerState
from jobset_gate.fake.apiserver.status_errors import StatusError, bad_request, conflict, no_such_path, not_allowed

_DONE = encode({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Success", "code": 201})


def require(call: ApiRequest) -> None:
    """Errors: Problem 404 for a subresource that the kind does not have, or that cannot be updated."""
    name = call.target.subresource
    if name in ("", *(("status",) if call.kind.status else ())):
        return
    if name == "finalize" and call.kind.key == ("", "namespaces"):
        return
    raise no_such_path()


async def post(core: ServerState, call: ApiRequest) -> ApiResponse:
    if call.kind.key != ("", "pods"):
        raise no_such_path()
    match call.target.subresource:
        case "binding":
            return await _bind(core, call)
        case "eviction":
            return await _evict(core, call)
        case _:
            raise not_allowed()


async def _bind(core: ServerState, call: ApiRequest) -> ApiResponse:
    """Give a pod its node, as nothing else can. Errors: Problem 409 for a pod that is taken or going."""
    body = bodies.parse(call)
    node = dig(body, "target", "name")
    if not node:
        raise bad_request("target.name: Required value")
    live = core.existing(call.kind, call.target.namespace, call.target.name)
    pod = live.fresh()
    meta, name = pod["metadata"], call.target.name or ""
    if dig(body, "metadata", "uid") not in (None, "", meta["uid"]):
        why = f"Precondition failed: UID in object meta: {meta['uid']}"
        raise conflict(call.kind, name, why, "pods/binding")
    if meta.get("deletionTimestamp"):
        raise conflict(call.kind, name, f"pod {name} is being deleted, cannot be assigned to a host", "pods/binding")
    if taken := pod["spec"].get("nodeName"):
        raise conflict(call.kind, name, f'pod {name} is already assigned to node "{taken}"', "pods/binding")
    if pod["spec"].get("schedulingGates"):
        raise conflict(call.kind, name, f"pod {name} has non-empty .spec.schedulingGates", "pods/binding")
    pod["spec"]["nodeName"] = node
    _set_scheduled(pod, core.now())
    if not call.dry_run:
        core.store.commit(call.kind, pod)
    return ApiResponse(201, _DONE)


def _set_scheduled(pod: Obj, now: str) -> None:
    others = [item for item in dig(pod, "status", "conditions") or () if item["type"] != "PodScheduled"]
    condition = {"type": "PodScheduled", "status": "True", "lastProbeTime": None, "lastTransitionTime": now}
    pod.setdefault("status", {})["conditions"] = [*others, condition]


async def _evict(core: ServerState, call: ApiRequest) -> ApiResponse:
    body = bodies.parse(call)
    if not isinstance(body, dict) or dig(body, "metadata", "name") not in (None, "", call.target.name):
        raise StatusError(400, "name in URL does not match name in Eviction object")
    options = deletes.options_of(body.get("deleteOptions") or {}, call.query)
    await deletes.delete_one(core, call, options)
    return ApiResponse(201, _DONE)
