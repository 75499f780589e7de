"""Strategic merge patch for built-in kinds: like a merge patch, but keyed lists merge item by item.

Directives understood: `$patch: delete|replace|merge`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and
`$setElementOrder/<field>` (whose order is not kept: kubectl sends it, nothing here depends on it).
"""

from __future__ import annotations

from typing import Any

from jobset_gate.sim.apiserver.data import Obj, copy
from jobset_gate.sim.apiserver.shapes import Shape

#: Lists that merge by key in a strategic merge patch although server-side apply takes them whole or by other keys.
_PATCH_KEYS = {"conditions": "type", "ports": "containerPort", "imagePullSecrets": "name"}


def merged(document: Obj, patch: Obj, shape: Shape) -> Obj:
    """`document` is given away by the caller, `patch` is not changed."""
    if patch.get("$patch") == "replace":
        return {name: copy(value) for name, value in patch.items() if name != "$patch"}
    for name, value in patch.items():
        if name.startswith("$deleteFromPrimitiveList/"):
            _without(document, name.partition("/")[2], value)
        elif not name.startswith("$"):
            _merge_field(document, name, value, shape.at(name))
    if "$retainKeys" in patch:
        retained = patch["$retainKeys"]
        return {name: value for name, value in document.items() if name in retained}
    return document


def _without(document: Obj, name: str, values: list[Any]) -> None:
    if name in document:
        document[name] = [item for item in document[name] if item not in values]


def _merge_field(document: Obj, name: str, value: Any, shape: Shape) -> None:
    if value is None:
        document.pop(name, None)
    elif isinstance(value, dict):
        if value.get("$patch") == "delete":
            document.pop(name, None)
        else:
            below = document.get(name)
            document[name] = merged(below if isinstance(below, dict) else {}, value, shape)
    elif isinstance(value, list):
        document[name] = _merge_list(document.get(name) or [], value, name, shape)
    else:
        document[name] = value


def _merge_list(items: list[Any], patch: list[Any], name: str, shape: Shape) -> list[Any]:
    if shape.a_set:
        return [*items, *(item for item in patch if item not in items)]
    key = _PATCH_KEYS.get(name) or (shape.keys[0] if shape.keys else None)
    if key is None or not all(isinstance(item, dict) for item in patch):
        return [copy(item) for item in patch]
    if any(item.get("$patch") == "replace" for item in patch):
        return [copy(item) for item in patch if "$patch" not in item]
    for change in patch:
        found = next((place for place, item in enumerate(items) if item.get(key) == change.get(key)), None)
        if change.get("$patch") == "delete":
            items = [item for place, item in enumerate(items) if place != found]
        elif found is None:
            items = [*items, merged({}, change, shape.item())]
        else:
            items[found] = merged(items[found], change, shape.item())
    return items
