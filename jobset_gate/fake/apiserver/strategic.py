"""Strategic merge patch for built-in kinds: like a merge patch, but keyed lists merge item by item.

Directives understood: `$patch: delete|replace|merge`, `$retainKeys`, `$deleteFromPrimitiveList/<field>` and
`$setElementOrder/<field>`.
"""

from __future__ import annotations

from typing import Any

from jobset_gate.fake.apiserver.encoding import Obj, copy
from jobset_gate.fake.apiserver.shapes import Shape

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
            _merge_field(document, name, value, shape.at(name), patch.get(f"$setElementOrder/{name}"))
    if "$retainKeys" in patch:
        retained = patch["$retainKeys"]
        return {name: value for name, value in document.items() if name in retained}
    return document


def _without(document: Obj, name: str, values: list[Any]) -> None:
    if name in document:
        document[name] = [item for item in document[name] if item not in values]


def _merge_field(document: Obj, name: str, value: Any, shape: Shape, order: list[Any] | None) -> None:
    if value is None:
        document.pop(name, None)
    elif isinstance(value, dict):
        if value.get("$patch") == "delete":
            document.pop(name, None)
        else:
            below = document.get(name)
            document[name] = merged(below if isinstance(below, dict) else {}, value, shape)
    elif isinstance(value, list):
        document[name] = _merge_list(document.get(name) or [], value, name, shape, order)
    else:
        document[name] = value


def _merge_list(items: list[Any], patch: list[Any], name: str, shape: Shape, order: list[Any] | None) -> list[Any]:
    if shape.a_set:
        return [*items, *(item for item in patch if item not in items)]
    key = _PATCH_KEYS.get(name) or (shape.keys[0] if shape.keys else None)
    if key is None or not all(isinstance(item, dict) for item in patch):
        return [copy(item) for item in patch]
    if any(item.get("$patch") == "replace" for item in patch):
        return [copy(item) for item in patch if "$patch" not in item]
    found = {item.get(key): item for item in items}
    for change in patch:
        which = change.get(key)
        if change.get("$patch") == "delete":
            found.pop(which, None)
        else:
            found[which] = merged(found.get(which) or {}, change, shape.item())
    wanted = [item.get(key) for item in (patch if order is None else order)]
    return [found[which] for which in _ordered([item.get(key) for item in items], wanted, set(found))]


def _ordered(server: list[Any], wanted: list[Any], present: set[Any]) -> list[Any]:
    """The patch's items in its order, the others in theirs; new items come as early as they can."""
    left = [which for which in dict.fromkeys(wanted) if which in present]
    right = [which for which in server if which in present and which not in left]
    places = {which: place for place, which in enumerate(server)}
    result: list[Any] = []
    while left and right:
        result.append((left if places.get(left[0], -1) < places[right[0]] else right).pop(0))
    return [*result, *left, *right, *(which for which in present if which not in places and which not in wanted)]
