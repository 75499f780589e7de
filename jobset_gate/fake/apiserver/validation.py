"""A custom object against its OpenAPI schema: types, ranges, required fields, list keys."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from jobset_gate.fake.apiserver import celrules
from jobset_gate.fake.apiserver.celrules import at, key_of
from jobset_gate.fake.apiserver.encoding import Obj, encode
from jobset_gate.fake.apiserver.status_errors import cause

_TYPES: dict[str, Callable[[Any], bool]] = {
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "string": lambda value: isinstance(value, str),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "number": lambda value: isinstance(value, int | float) and not isinstance(value, bool),
}
_IDENTITY = ("apiVersion", "kind", "metadata")
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; correct the existing errors to complete "
    "validation"
)
_NAMES = {
    dict: "object",
    list: "array",
    str: "string",
    bool: "boolean",
    int: "integer",
    float: "number",
    type(None): "null",
}


def problems(new: Obj, schema: Obj, old: Obj | None) -> list[Obj]:
    """All causes in one list. Rules are only asked about an object that is otherwise sound."""
    body = _body(new)
    top = {**schema, "required": [name for name in schema.get("required") or () if name not in _IDENTITY]}
    found = list(_problems(body, top, ""))
    if not found:
        return list(celrules.problems(body, schema, "", None if old is None else _body(old)))
    if celrules.are_in(schema):
        found.append(cause("<nil>", f"Invalid value: null: {_UNCHECKED}"))
    return found


def _body(obj: Obj) -> Obj:
    return {name: value for name, value in obj.items() if name not in _IDENTITY}


def _problems(value: Any, schema: Obj, path: str) -> Iterator[Obj]:
    if value is None and schema.get("nullable"):
        return
    wanted = schema.get("type")
    if schema.get("x-kubernetes-int-or-string"):
        wanted = None
    if wanted and not _TYPES[wanted](value):
        got = f'"{_NAMES[type(value)]}"'
        yield cause(
            path, f"Invalid value: {got}: {path} in body must be of type {wanted}: {got}", "FieldValueTypeInvalid"
        )
        return
    yield from _range_problems(value, schema, path)
    if isinstance(value, dict):
        yield from _object_problems(value, schema, path)
    elif isinstance(value, list):
        yield from _list_problems(value, schema, path)


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
        yield cause(
            path, f"Invalid value: {_shown(value)}: {path} in body should be at least {schema['minLength']} chars long"
        )
    pattern = schema.get("pattern")
    if pattern and not re.search(pattern, value):
        yield cause(path, f"Invalid value: {_shown(value)}: {path} in body should match '{pattern}'")


def _object_problems(value: Obj, schema: Obj, path: str) -> Iterator[Obj]:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in schema.get("required") or ():
        if name not in value:
            yield cause(at(path, name), "Required value", "FieldValueRequired")
    for name, part in value.items():
        below = properties.get(name) or (extra if isinstance(extra, dict) else None)
        if below is not None:
            yield from _problems(part, below, at(path, name))


def _list_problems(value: list[Any], schema: Obj, path: str) -> Iterator[Obj]:
    most = schema.get("maxItems")
    if most is not None and len(value) > most:
        yield cause(path, f"Too many: {len(value)}: must have at most {most} items", "FieldValueTooMany")
    if len(value) < schema.get("minItems", 0):
        yield cause(
            path, f"Invalid value: {len(value)}: {path} in body should have at least {schema['minItems']} items"
        )
    keys = schema.get("x-kubernetes-list-map-keys") or ()
    seen: set[str] = set()
    for place, item in enumerate(value):
        here, key = f"{path}[{place}]", key_of(item, keys)
        if (keys or schema.get("x-kubernetes-list-type") == "set") and key in seen:
            yield cause(here, f"Duplicate value: {key}", "FieldValueDuplicate")
        seen.add(key)
        yield from _problems(item, schema.get("items") or {}, here)


def _shown(value: Any) -> str:
    return encode(value).decode()
