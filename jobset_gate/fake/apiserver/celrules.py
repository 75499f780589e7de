"""x-kubernetes-validations: the CEL rules of a custom kind's schema, those on changes included."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from jobset_gate.fake.apiserver import cel
from jobset_gate.fake.apiserver.encoding import Obj, encode
from jobset_gate.fake.apiserver.status_errors import cause


def problems(value: Any, schema: Obj, path: str, old: Any) -> Iterator[Obj]:
    """Causes of a 422. A rule with oldSelf is about changes: it is asked only where there is an old value."""
    yield from _own(value, schema, path, old)
    if isinstance(value, dict):
        before = old if isinstance(old, dict) else {}
        for name, below in _properties(value, schema):
            yield from problems(value[name], below, at(path, name), before.get(name))
    elif isinstance(value, list) and isinstance(schema.get("items"), dict):
        keys = schema.get("x-kubernetes-list-map-keys") or ()
        matched = {key_of(item, keys): item for item in old or ()} if keys else {}
        for place, item in enumerate(value):
            yield from problems(item, schema["items"], f"{path}[{place}]", matched.get(key_of(item, keys)))


def _properties(value: Obj, schema: Obj) -> Iterator[tuple[str, Obj]]:
    properties, extra = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in value:
        below = properties.get(name) or (extra if isinstance(extra, dict) else None)
        if below is not None:
            yield name, below


def _own(value: Any, schema: Obj, path: str, old: Any) -> Iterator[Obj]:
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
            sort = "object" if isinstance(value, dict) else "array" if isinstance(value, list) else ""
            shown = f'"{sort}"' if sort else encode(value).decode()
            yield cause(path, f"Invalid value: {shown}: {rule.get('message') or f'failed rule: {text}'}")


def are_in(schema: Obj) -> bool:
    """Whether a schema has any rules."""
    if schema.get("x-kubernetes-validations"):
        return True
    parts = [*(schema.get("properties") or {}).values(), schema.get("items"), schema.get("additionalProperties")]
    return any(are_in(part) for part in parts if isinstance(part, dict))


def at(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def key_of(item: Any, keys: Sequence[str]) -> str:
    """A list item's identity: its keys, or (without keys) all of it."""
    if keys and isinstance(item, dict):
        item = {name: item.get(name) for name in keys}
    return encode(item).decode()
