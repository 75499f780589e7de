"""PATCH bodies: JSON patch (also for the answers of webhooks), merge patch, strategic merge patch, apply.

Apply merges like a strategic merge patch: owners of fields, conflicts and removal are tested on the real API server.
"""

from __future__ import annotations

from typing import Any

from jobset_gate.fake.apiserver.requests import ApiRequest, parse_body, whole_object
from jobset_gate.fake.apiserver.responses import Obj, StatusError, bad_request, copy
from jobset_gate.objects.unstructured import nested

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
STRATEGIC = "application/strategic-merge-patch+json"
APPLY = "application/apply-patch+yaml"

_LIST_KEYS = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "ephemeralContainers": "name",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "schedulingGates": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists that a strategic merge patch merges by key; all others it replaces."""


def read_patch(request: ApiRequest) -> Any:
    """The body. Errors: StatusError 415 for a patch that is not served, 400 for a bad body."""
    sort = request.media_type
    served = (JSON, MERGE, APPLY) if request.kind.custom else (JSON, MERGE, STRATEGIC, APPLY)
    if sort not in served:
        raise StatusError(415, f"the body of the request was in an unknown format: {sort}")
    body = parse_body(request)
    if not isinstance(body, list if sort == JSON else dict):
        raise bad_request("json: cannot unmarshal the patch")
    return whole_object(request, body) if sort == APPLY else body


def patched(request: ApiRequest, body: Any, live: Obj) -> Obj:
    """What the patch makes of the live object, which it changes."""
    match request.media_type:
        case "application/json-patch+json":
            new = json_patched(live, body)
        case "application/merge-patch+json":
            new = merged(live, body)
        case _:
            new = strategic_merged(live, body)
    if not isinstance(nested(new, "metadata"), dict):
        raise bad_request("the patched object must have metadata")
    return new  # type: ignore[no-any-return]


def merged(document: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386). It changes `document`, not `patch`."""
    if not isinstance(patch, dict):
        return patch
    result = document if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def strategic_merged(document: Obj, patch: Obj) -> Obj:
    """A merge patch that merges lists by key; of its directives `$patch` and `$deleteFromPrimitiveList`."""
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            field = name.partition("/")[2]
            if field in document:
                document[field] = [item for item in document[field] if item not in value]
        if name.startswith("$"):
            continue
        if value is None:
            document.pop(name, None)
        elif isinstance(value, dict):
            below = document.get(name)
            document[name] = strategic_merged(below if isinstance(below, dict) else {}, value)
        elif isinstance(value, list) and name in _LIST_KEYS:
            document[name] = _merged_list(document.get(name) or [], value, _LIST_KEYS[name])
        else:
            document[name] = copy(value)
    return document


def _merged_list(items: list[Obj], patch: list[Obj], key: str) -> list[Obj]:
    found = {item.get(key): item for item in items}
    for change in patch:
        if change.get("$patch") == "delete":
            found.pop(change.get(key), None)
        else:
            found[change.get(key)] = strategic_merged(found.get(change.get(key)) or {}, change)
    return list(found.values())


# --- JSON patch (RFC 6902) --------------------------------------------------------------------------------------------


def json_patched(document: Any, operations: list[Obj]) -> Any:
    """Apply all operations to `document`, which changes. Errors: StatusError 422."""
    for operation in operations:
        path = nested(operation, "path")
        if not isinstance(path, str) or (path and not path.startswith("/")):
            raise _refused(f"not a JSON patch operation: {operation!r}")
        try:
            document = _patched_once(document, operation, _steps(path))
        except (KeyError, IndexError, TypeError, ValueError) as error:
            raise _refused(f"doc is missing path: {path}: missing value") from error
    return document


def _patched_once(document: Any, operation: Obj, path: list[str]) -> Any:
    value = copy(operation.get("value"))
    match operation.get("op"):
        case "add" | "replace" if not path:
            return value
        case "add":
            parent, last = _value_at(document, path[:-1]), path[-1]
            if isinstance(parent, list):
                parent.insert(len(parent) if last == "-" else _index(parent, last, end=1), value)
            else:
                parent[last] = value
        case "replace":
            parent = _value_at(document, path[:-1])
            parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]] = value
        case "remove":
            parent = _value_at(document, path[:-1])
            del parent[_index(parent, path[-1]) if isinstance(parent, list) else path[-1]]
        case "test":
            try:
                found = _value_at(document, path)
            except (KeyError, IndexError, TypeError):
                found = None
            if found != value:
                raise _refused(f"testing value {operation['path']} failed: test failed")
        case other:
            raise _refused(f"Unexpected kind: {other}")
    return document


def _steps(pointer: str) -> list[str]:
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def _value_at(document: Any, path: list[str]) -> Any:
    for step in path:
        document = document[_index(document, step) if isinstance(document, list) else step]
    return document


def _index(items: list[Any], step: str, *, end: int = 0) -> int:
    place = int(step)
    if not 0 <= place < len(items) + end:
        raise IndexError(step)
    return place


def _refused(message: str) -> StatusError:
    return StatusError(422, f"the server rejected our request due to an error in our request: {message}")
