"""Server-side apply's first step for custom kinds: the configuration must fit the schema's types."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobset_gate.fake.apiserver import fields
from jobset_gate.fake.apiserver.custom import shape_of
from jobset_gate.fake.apiserver.encoding import Obj
from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.status_errors import StatusError

_EXPECTED = {"object": "map", "array": "list", "string": "string", "boolean": "boolean"}
_GOT = {dict: "map", list: "list", str: "string", bool: "boolean", int: "int", float: "float"}


def require(kind: ServedKind, config: Obj) -> None:
    """Errors: Problem 500, as the real server has it, with all that does not fit."""
    if kind.schema is None:
        return
    body = {name: value for name, value in config.items() if name not in ("apiVersion", "kind", "metadata")}
    found = list(_misfits(body, kind.schema, ""))
    if not found:
        return
    meta = config["metadata"]
    what = f"{meta.get('namespace', '')}/{meta.get('name', '')}; {kind.api_version}, Kind={kind.kind}"
    listed = found[0] if len(found) == 1 else "errors:\n" + "\n".join(f"  {text}" for text in found)
    raise StatusError(500, f"failed to create typed patch object ({what}): {listed}", reason="")


def _misfits(value: Any, schema: Obj, path: str) -> Iterator[str]:
    wanted = schema.get("type")
    if value is None or schema.get("x-kubernetes-int-or-string") or wanted is None:
        return
    if not _fits(value, wanted):
        yield f"{path}: expected {_EXPECTED.get(wanted, 'numeric (int or float)')}, got {_GOT[type(value)]}"
    elif isinstance(value, dict):
        yield from _map_misfits(value, schema, path)
    elif isinstance(value, list):
        yield from _list_misfits(value, schema, path)


def _fits(value: Any, wanted: str) -> bool:
    got = _GOT[type(value)]
    return got == _EXPECTED[wanted] if wanted in _EXPECTED else got in ("int", "float")


def _map_misfits(value: Obj, schema: Obj, path: str) -> Iterator[str]:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    loose = bool(extra) or schema.get("x-kubernetes-preserve-unknown-fields") or "properties" not in schema
    for name, part in value.items():
        below = properties.get(name) or (extra if isinstance(extra, dict) else None)
        if below is not None:
            yield from _misfits(part, below, f"{path}.{name}")
        elif not loose:
            yield f"{path}.{name}: field not declared in schema"


def _list_misfits(value: list[Any], schema: Obj, path: str) -> Iterator[str]:
    shape = shape_of(schema)
    keyed = shape.a_set or bool(shape.keys)
    seen: set[str] = set()
    for place, item in enumerate(value):
        step = fields.item_step(item, shape) if keyed else str(place)
        shown = fields.shown(step) if keyed else f"[{place}]"
        if step in seen:
            yield f"{path}: duplicate entries for key {shown}"
        seen.add(step)
        yield from _misfits(item, schema.get("items") or {}, path + shown)
