"""PATCH bodies: JSON patch (also for the answers of webhooks), merge patch, strategic merge patch, apply.

Apply merges like a strategic merge patch: owners of fields, conflicts and removal are tested on the real API server.
"""

from __future__ import annotations

from typing import Any

from jobset_gate_demo.fake.apiserver.responses import Obj, StatusError, copy

JSON = "application/json-patch+json"
MERGE = "application/merge-patch+json"
APPLY = "application/apply-patch+yaml"

_LIST_KEYS = {
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "initContainers": "name",
    "ownerReferences": "uid",
    "ports": "containerPort",
    "schedulingGates": "name",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""Lists that a strategic merge patch merges by key; all others it replaces."""


def patched(media_type: str, body: Any, live: Obj) -> Any:
    """What the patch makes of the live object, which it changes."""
    match media_type:
        case "application/json-patch+json":
            return json_patched(live, body)
        case "application/merge-patch+json":
            return _merged(live, body)
        case _:
            return _strategic_merged(live, body)


def _merged(document: Any, patch: Any) -> Any:
    """JSON merge patch (RFC 7386). It changes `document`, not `patch`."""
    if not isinstance(patch, dict):
        return patch
    result = document if isinstance(document, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = _merged(result.get(name), value)
    return result


def _strategic_merged(document: Obj, patch: Obj) -> Obj:
    """A merge patch that merges lists by key; of its directives `$patch` and `$deleteFromPrimitiveList`."""
    for name, value in patch.items():
        directive, _, field = name.partition("/")
        if directive == "$deleteFromPrimitiveList" and field in document:
            document[field] = [item for item in document[field] if item not in value]
        elif name.startswith("$"):
            continue
        elif value is None:
            document.pop(name, None)
        elif isinstance(value, dict):
            document[name] = _strategic_merged(document.get(name) or {}, value)
        elif isinstance(value, list) and name in _LIST_KEYS:
            document[name] = _merged_list(document.get(name) or [], value, _LIST_KEYS[name])
        else:
            document[name] = copy(value)
    return document


def _merged_list(items: list[Obj], patch: list[Obj], key: str) -> list[Obj]:
    found = {item[key]: item for item in items}
    for change in patch:
        if change.get("$patch") == "delete":
            found.pop(change[key], None)
        else:
            found[change[key]] = _strategic_merged(found.get(change[key]) or {}, change)
    return list(found.values())


# --- JSON patch (RFC 6902) --------------------------------------------------------------------------------------------


def json_patched(document: Any, operations: list[Obj]) -> Any:
    """Apply all operations to `document`, which changes. Errors: StatusError 422."""
    for operation in operations:
        try:
            _apply(document, operation)
        except (LookupError, TypeError, ValueError) as error:
            message = f"the server rejected our request due to an error in our request: {operation}: {error!r}"
            raise StatusError(422, message) from error
    return document


def _apply(document: Any, operation: Obj) -> None:
    *above, last = (step.replace("~1", "/").replace("~0", "~") for step in operation["path"].split("/")[1:])
    for step in above:
        document = document[int(step) if isinstance(document, list) else step]
    is_list, value = isinstance(document, list), copy(operation.get("value"))
    key: Any = int(last) if is_list and last != "-" else last
    match operation["op"]:
        case "add" if is_list:
            document.insert(len(document) if key == "-" else key, value)
        case "add" | "replace":
            document[key] = value
        case "remove":
            del document[key]
        case "test":
            if document[key] != value:
                raise ValueError("test failed")
        case other:
            raise ValueError(f"unexpected operation {other}")
