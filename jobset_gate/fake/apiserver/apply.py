"""Server-side apply and metadata.managedFields, with ownership of the fields below spec, status and data as a whole.

Items of metadata's maps and lists and conditions (by their type) have owners of their own. Anything deeper than that
belongs to the manager that last wrote its parent: merging by list keys is tested on the real API server.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from jobset_gate.fake.apiserver.responses import Obj, StatusError, bad_request, cause, copy, decode, encode

Path = tuple[str, ...]
"""Steps as FieldsV1 writes them: `f:<field>`, `k:<JSON of the item's keys>`, `v:<JSON of the item>`."""
_KEYS = {"conditions": "type", "ownerReferences": "uid"}
_SYSTEM = frozenset(
    ("name", "namespace", "creationTimestamp", "selfLink", "uid", "generation", "managedFields", "resourceVersion")
)


@dataclass(frozen=True, slots=True)
class FieldManager:
    """The identity under which fields are owned. operation: "Apply" or "Update"."""

    name: str
    operation: str
    api_version: str
    subresource: str = ""


_Owners = dict[FieldManager, tuple[frozenset[Path], str]]
"""What each manager owns, and the time of its last change."""


def apply(live: Obj, config: Obj, writer: FieldManager, *, now: str, without: tuple[str, ...], force: bool) -> Obj:
    """The object that `config` makes of `live`. Errors: StatusError 409 that names every conflict, unless `force`."""
    owners = _read(live)
    wanted, current = dict(_leaves(config, without)), dict(_leaves(live, without))
    changed = frozenset(path for path, value in wanted.items() if current.get(path) != value)
    if not force:
        _refuse_conflicts(owners, writer, changed)
    before, time = owners.pop(writer, (frozenset(), now))
    owners = _without(owners, changed)
    still_owned = frozenset().union(wanted, *(paths for paths, _ in owners.values()))
    new: Obj = copy(live)
    for path in before - still_owned:
        _remove(new, path)
    for path in changed:
        _set(new, path, copy(wanted[path]))
    same = not changed and before == wanted.keys()
    owners[writer] = frozenset(wanted), time if same else now
    _write(new, owners)
    return new


def track_update(live: Obj | None, new: Obj, writer: FieldManager, *, now: str, without: tuple[str, ...]) -> None:
    """Note in `new` that an ordinary (non-apply) write made it out of `live`."""
    given = new["metadata"].get("managedFields")
    owners = {} if given == [{}] else _read(new if given else live)
    before, after = dict(_leaves(live or {}, without)), dict(_leaves(new, without))
    removed = before.keys() - after.keys()
    changed = frozenset(path for path, value in after.items() if path not in before or before[path] != value)
    if removed or changed:
        own = owners.get(writer, (frozenset(), ""))[0]
        owners = _without(owners, changed | removed)
        owners[writer] = (own - removed) | changed, now
    _write(new, owners)


def _leaves(obj: Obj, without: tuple[str, ...]) -> Iterator[tuple[Path, Any]]:
    """The parts of an object that have an owner. `without`: top-level fields that this endpoint never writes."""
    for name, value in obj.items():
        if name in ("apiVersion", "kind") or name in without:
            continue
        if not isinstance(value, dict):
            yield (f"f:{name}",), value
            continue
        for field, part in value.items():
            if name == "metadata" and field in _SYSTEM:
                continue
            steps = _items(field, part, maps=name == "metadata")
            yield from (((f"f:{name}", f"f:{field}", *step), item) for step, item in steps)


def _items(field: str, value: Any, *, maps: bool) -> Iterator[tuple[Path, Any]]:
    """What has owners of its own below a field; the field itself if nothing has."""
    if maps and isinstance(value, dict):
        yield from (((f"f:{key}",), item) for key, item in value.items())
    elif isinstance(value, list) and (key := _KEYS.get(field)):
        yield from (((f"k:{encode({key: item.get(key)}).decode()}",), item) for item in value)
    elif field == "finalizers":
        yield from (((f"v:{encode(item).decode()}",), item) for item in value or ())
    else:
        yield (), value


def _set(obj: Obj, path: Path, value: Any) -> None:
    parent: Any = obj
    for step, following in pairwise(path):
        parent = parent.setdefault(step[2:], {} if following.startswith("f:") else [])
    if isinstance(parent, dict):
        parent[path[-1][2:]] = value
        return
    _drop_item(parent, path[-1])
    parent.append(value)


def _remove(obj: Obj, path: Path) -> None:
    parent: Any = obj
    for step in path[:-1]:
        parent = parent.get(step[2:])
        if parent is None:
            return
    if isinstance(parent, dict):
        parent.pop(path[-1][2:], None)
    else:
        _drop_item(parent, path[-1])


def _drop_item(items: list[Any], step: str) -> None:
    key = decode(step[2:].encode())
    items[:] = [item for item in items if not (key.items() <= item.items() if isinstance(key, dict) else item == key)]


def _refuse_conflicts(owners: _Owners, writer: FieldManager, changed: frozenset[Path]) -> None:
    causes = [
        cause("".join(f".{step[2:]}" for step in path), f"conflict with {_identity(manager)}", "FieldManagerConflict")
        for manager, (paths, _) in owners.items()
        if manager != writer
        for path in sorted(paths & changed)
    ]
    if causes:
        text = "; ".join(f"{one['message']}: {one['field']}" for one in causes)
        message = f"Apply failed with {len(causes)} conflict{'s' if len(causes) > 1 else ''}: {text}"
        raise StatusError(409, message, details={"causes": causes})


def _identity(manager: FieldManager) -> str:
    subresource = f' with subresource "{manager.subresource}"' if manager.subresource else ""
    return f'"{manager.name}"{subresource}' + (f" using {manager.api_version}" if manager.operation == "Update" else "")


def _without(owners: _Owners, lost: frozenset[Path]) -> _Owners:
    return {manager: (paths - lost, time) for manager, (paths, time) in owners.items()}


def _read(obj: Obj | None) -> _Owners:
    """Errors: StatusError 400 for entries that are not well formed."""
    owners: _Owners = {}
    for entry in (obj or {}).get("metadata", {}).get("managedFields") or []:
        try:
            manager = FieldManager(
                entry["manager"], entry["operation"], entry["apiVersion"], entry.get("subresource", "")
            )
            owners[manager] = frozenset(_paths(entry.get("fieldsV1") or {})), entry.get("time", "")
        except (KeyError, TypeError, AttributeError) as error:
            raise bad_request(f"metadata.managedFields: Invalid value: {entry!r}") from error
    return owners


def _paths(tree: Obj, above: Path = ()) -> Iterator[Path]:
    for step, below in tree.items():
        if below:
            yield from _paths(below, (*above, step))
        else:
            yield (*above, step)


def _write(obj: Obj, owners: _Owners) -> None:
    meta = obj["metadata"]
    meta.pop("managedFields", None)
    ordered = sorted(owners.items(), key=lambda item: (item[0].operation, item[1][1], item[0].name))
    entries = [_entry(manager, paths, time) for manager, (paths, time) in ordered if paths]
    if entries:
        meta["managedFields"] = entries


def _entry(manager: FieldManager, paths: frozenset[Path], time: str) -> Obj:
    tree: Obj = {}
    for path in sorted(paths):
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    entry: Obj = {
        "manager": manager.name,
        "operation": manager.operation,
        "apiVersion": manager.api_version,
        "time": time,
        "fieldsType": "FieldsV1",
        "fieldsV1": tree,
    }
    return {**entry, "subresource": manager.subresource} if manager.subresource else entry
