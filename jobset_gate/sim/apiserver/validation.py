"""A custom object against its OpenAPI schema: types, ranges, required fields, list keys, CEL rules."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from jobset_gate.sim.apiserver import cel
from jobset_gate.sim.apiserver.data import Obj, encode
from jobset_gate.sim.apiserver.problems import cause

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
_NAMES = {dict: "object", list: "array", str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


def problems(new: Obj, schema: Obj, old: Obj | None) -> list[Obj]:
    """All causes in one list."""
    body = {name: value for name, value in new.items() if name not in ("apiVersion", "kind", "metadata")}
    was = None if old is None else {name: old[name] for name in old if name not in ("apiVersion", "kind", "metadata")}
    top = {**schema, "required": [name for name in schema.get("required") or () if name in (*body, "spec", "status")]}
    return list(_problems(body, top, "", was))


def _problems(value: Any, schema: Obj, path: str, old: Any) -> Iterator[Obj]:
    if value is None and schema.get("nullable"):
        return
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        wanted = None
    if wanted and not _TYPES[wanted](value):
        yield cause(path, f"Invalid value: {_shown(value)}: {path} in body must be of type {wanted}: "
                    f'"{_NAMES[type(value)]}"', "FieldValueTypeInvalid")  # fmt: skip
        return
    yield from _range_problems(value, schema, path)
    if isinstance(value, dict):
        yield from _object_problems(value, schema, path, old if isinstance(old, dict) else None)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, path, old if isinstance(old, list) else None)
    yield from _rule_problems(value, schema, path, old)


def _range_problems(value: Any, schema: Obj, path: str) -> Iterator[Obj]:
    if "enum" in schema and value not in schema["enum"]:
        listed = ", ".join(_shown(item) for item in schema["enum"])
        yield cause(path, f"Unsupported value: {_shown(value)}: supported values: {listed}", "FieldValueNotSupported")
    if isinstance(value, int | float) and not isinstance(value, bool):
        yield from _number_problems(value, schema, path)
    if isinstance(value, str):
        yield from _text_problems(value, schema, path)


def _number_problems(value: float, schema: Obj, path: str) -> Iterator[Obj]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and value < least:
        yield cause(path, f"Invalid value: {value}: {path} in body should be greater than or equal to {least}")
    if most is not None and value > most:
        yield cause(path, f"Invalid value: {value}: {path} in body should be less than or equal to {most}")
    if schema.get("format") == "int32" and not -(2**31) <= value < 2**31:
        yield cause(path, f"Invalid value: {value}: {path} in body must be of type int32: {_shown(str(value))}")


def _text_problems(value: str, schema: Obj, path: str) -> Iterator[Obj]:
    if len(value) > schema.get("maxLength", len(value)):
        yield cause(path, f"Too long: may not be more than {schema['maxLength']} bytes", "FieldValueTooLong")
    if len(value) < schema.get("minLength", 0):
        yield cause(path, f"Invalid value: {_shown(value)}: {path} in body should be at least {schema['minLength']} chars long")
    pattern = schema.get("pattern")
    if pattern and not re.search(pattern, value):
        yield cause(path, f"Invalid value: {_shown(value)}: {path} in body should match '{pattern}'")


def _object_problems(value: Obj, schema: Obj, path: str, old: Obj | None) -> Iterator[Obj]:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value:
            yield cause(_at(path, name), "Required value", "FieldValueRequired")
    for name, part in value.items():
        below = properties.get(name) or (extra if isinstance(extra, dict) else None)
        if below is not None:
            yield from _problems(part, below, _at(path, name), (old or {}).get(name))


def _list_problems(value: list[Any], schema: Obj, path: str, old: list[Any] | None) -> Iterator[Obj]:
    most = schema.get("maxItems")
    if most is not None and len(value) > most:
        yield cause(path, f"Too many: {len(value)}: must have at most {most} items", "FieldValueTooMany")
    if len(value) < schema.get("minItems", 0):
        yield cause(path, f"Invalid value: {len(value)}: {path} in body should have at least {schema['minItems']} items")
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    before = {_key(item, keys): item for item in old or ()} if keys else {}
    seen: set[str] = set()
    for place, item in enumerate(value):
        at, key = f"{path}[{place}]", _key(item, keys)
        if (keys or schema.get("x-kubernetes-list-type") == "set") and key in seen:
            yield cause(at, f"Duplicate value: {key}", "FieldValueDuplicate")
        seen.add(key)
        yield from _problems(item, schema.get("items") or {}, at, before.get(key))


def _key(item: Any, keys: list[str] | tuple[str, ...]) -> str:
    if keys and isinstance(item, dict):
        return _shown({name: item.get(name) for name in keys})
    return _shown(item)


def _rule_problems(value: Any, schema: Obj, path: str, old: Any) -> Iterator[Obj]:
    for rule in schema.get("x-kubernetes-validations") or ():
        text = rule["rule"]
        if "oldSelf" in text and old is None:
            continue
        try:
            holds = cel.evaluate(text, {"self": value, "oldSelf": old}) is True
        except cel.CelError as error:
            yield cause(path, f"Invalid value: rule evaluation error: {error}")
            continue
        if not holds:
            yield cause(path, f"Invalid value: {rule.get('message') or f'failed rule: {text}'}")


def _at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _shown(value: Any) -> str:
    return encode(value).decode()
