"""Custom kinds: a CRD's schema -> what is pruned, refused, defaulted and merged."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from jobset_gate.fake.apiserver import validation
from jobset_gate.fake.apiserver.encoding import Obj, copy
from jobset_gate.fake.apiserver.kinds import ServedKind
from jobset_gate.fake.apiserver.requests import ApiRequest
from jobset_gate.fake.apiserver.shapes import DEDUCED, OBJECT_META, Shape, with_metadata
from jobset_gate.fake.apiserver.status_errors import StatusError, bad_request, cause, invalid

_ROOT = ("apiVersion", "kind", "metadata")


def kinds_of(crd: Obj) -> list[ServedKind]:
    """The served versions of a CRD."""
    spec = crd["spec"]
    return [_kind(spec, version) for version in spec["versions"] if version.get("served", True)]


def _kind(spec: Obj, version: Obj) -> ServedKind:
    names = spec["names"]
    schema = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return ServedKind(
        spec["group"],
        version["name"],
        names["plural"],
        names["kind"],
        namespaced=spec.get("scope") != "Cluster",
        status="status" in (version.get("subresources") or {}),
        generation=True,
        short=tuple(names.get("shortNames") or ()),
        shape=with_metadata(shape_of(schema)),
        schema=schema,
        custom=True,
        singular_name=names.get("singular", ""),
    )


def shape_of(schema: Obj) -> Shape:
    """How objects of a structural schema merge."""
    match schema.get("type"):
        case "array":
            return _list_shape(schema)
        case "object":
            return _map_shape(schema)
        case _:
            return DEDUCED


def _list_shape(schema: Obj) -> Shape:
    items = shape_of(schema.get("items") or {})
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
            properties = (schema.get("items") or {}).get("properties") or {}
            defaults = {key: properties[key]["default"] for key in keys if "default" in properties.get(key, {})}
            return Shape(items=items, keys=keys, key_defaults=defaults)
        case "set":
            return Shape(a_set=True)
        case _:
            return Shape(atomic=True)


def _map_shape(schema: Obj) -> Shape:
    if schema.get("x-kubernetes-map-type") == "atomic":
        return Shape(atomic=True)
    fields = {name: shape_of(part) for name, part in (schema.get("properties") or {}).items()}
    if schema.get("x-kubernetes-embedded-resource"):
        fields["metadata"] = OBJECT_META
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return Shape(fields=fields, items=shape_of(extra), open=True)
    loose = bool(extra or schema.get("x-kubernetes-preserve-unknown-fields"))
    return Shape(fields=fields, open=loose)


def prune(call: ApiRequest, obj: Obj) -> None:
    """Remove what the schema does not know; say so, or refuse, as the request's fieldValidation asks."""
    kind = call.kind
    if kind.schema is None:
        return
    unknown = sorted(set(_prune(obj, kind.schema, "", root=True)))
    wish = call.query.get("fieldValidation") or "Warn"
    if not unknown or wish == "Ignore":
        return
    texts = [f'unknown field "{path}"' for path in unknown]
    if wish == "Strict":
        raise _strict_error(call, f"strict decoding error: {', '.join(texts)}")
    for text in texts:
        call.warn(text)


def _strict_error(call: ApiRequest, why: str) -> StatusError:
    kind = call.kind
    if call.verb == "patch":
        nameless = ServedKind("", "", "", "")
        return invalid(nameless, "", [cause("patch", f"Invalid value: {call.body.decode(errors='replace')!r}: {why}")])
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def _prune(value: Any, schema: Obj, path: str, *, root: bool = False) -> Iterator[str]:
    if isinstance(value, list):
        items = schema.get("items")
        for place, item in enumerate(value):
            if isinstance(items, dict):
                yield from _prune(item, items, f"{path}[{place}]")
    elif isinstance(value, dict):
        yield from _prune_map(value, schema, path, root=root or bool(schema.get("x-kubernetes-embedded-resource")))


def _prune_map(value: Obj, schema: Obj, path: str, *, root: bool) -> Iterator[str]:
    properties = schema.get("properties") or {}
    extra = schema.get("additionalProperties")
    loose = bool(extra) or schema.get("x-kubernetes-preserve-unknown-fields")
    for name in list(value):
        at = f"{path}.{name}" if path else name
        if root and name in _ROOT:
            continue
        if name in properties:
            yield from _prune(value[name], properties[name], at)
        elif isinstance(extra, dict):
            yield from _prune(value[name], extra, at)
        elif not loose:
            del value[name]
            yield at


def default(kind: ServedKind, obj: Obj) -> None:
    """Drop nulls where the schema has none, fill in its defaults."""
    if kind.schema is not None:
        _default(obj, kind.schema)


def _default(value: Any, schema: Obj) -> None:
    if isinstance(value, list):
        for item in value:
            _default(item, schema.get("items") or {})
    elif isinstance(value, dict):
        properties = schema.get("properties") or {}
        for name, part in properties.items():
            if name in value and value[name] is None and not part.get("nullable"):
                del value[name]
            if "default" in part and name not in value:
                value[name] = copy(part["default"])
        extra = schema.get("additionalProperties")
        for name, part in value.items():
            _default(part, properties.get(name) or (extra if isinstance(extra, dict) else {}))


def check(kind: ServedKind, new: Obj, old: Obj | None) -> list[Obj]:
    """Causes of a 422, by the schema and its rules."""
    if kind.schema is None:
        return []
    return validation.problems(new, kind.schema, old)
