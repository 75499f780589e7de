"""Turns a schema out of an API server's OpenAPI v3 document into a structural schema for a CRD.

References are inlined; list types and map keys are kept, since they decide how server-side apply merges; what a
structural schema may not have is left out, and so are descriptions.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobset_gate.fake.objects import Json

_KEPT = (
    "type",
    "format",
    "required",
    "x-kubernetes-list-type",
    "x-kubernetes-list-map-keys",
    "x-kubernetes-map-type",
)
_PREFIX = "#/components/schemas/"
_INT_OR_STRING: Json = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_STRINGS: Json = {"type": "object", "additionalProperties": {"type": "string"}}
_EMBEDDED_META: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "namespace": {"type": "string"},
        "labels": _STRINGS,
        "annotations": _STRINGS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
    },
}
_SPECIAL: Mapping[str, Json] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": _EMBEDDED_META,
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _INT_OR_STRING,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _INT_OR_STRING,
}
_UNUSED_FORMATS = ("byte", "int-or-string")


def structural(schema: Mapping[str, Any], schemas: Mapping[str, Json]) -> Json:
    """`schemas` are the document's components. Errors: KeyError for a reference that leads nowhere."""
    reference = _reference(schema)
    if reference is not None:
        return dict(_SPECIAL[reference]) if reference in _SPECIAL else structural(schemas[reference], schemas)
    built: Json = {key: schema[key] for key in _KEPT if key in schema}
    if built.get("format") in _UNUSED_FORMATS:
        del built["format"]
    if "properties" in schema:
        built["properties"] = {name: _property(part, schemas) for name, part in schema["properties"].items()}
    if "items" in schema:
        built["items"] = structural(schema["items"], schemas)
        _default_map_keys(built, schema, schemas)
    if isinstance(schema.get("additionalProperties"), Mapping):
        built["additionalProperties"] = structural(schema["additionalProperties"], schemas)
    if "type" not in built:
        built["x-kubernetes-preserve-unknown-fields"] = True
    return built


def _property(part: Mapping[str, Any], schemas: Mapping[str, Json]) -> Json:
    """A default that is a Go zero value comes from the type, not from the API: required fields would be optional."""
    built = structural(part, schemas)
    if part.get("default"):
        built["default"] = part["default"]
    return built


def _default_map_keys(built: Json, schema: Mapping[str, Any], schemas: Mapping[str, Json]) -> None:
    """The keys of a list-map must be required or have a default, be it an empty one."""
    item = schema["items"]
    reference = _reference(item)
    properties = (schemas[reference] if reference else item).get("properties") or {}
    for key in built.get("x-kubernetes-list-map-keys") or ():
        target = built["items"]["properties"][key]
        if key not in built["items"].get("required", ()) and "default" not in target:
            target["default"] = properties[key].get("default", "")


def _reference(schema: Mapping[str, Any]) -> str | None:
    wrapped = schema.get("allOf")
    found = schema.get("$ref") or (wrapped[0].get("$ref") if wrapped and len(wrapped) == 1 else None)
    return None if found is None else str(found).removeprefix(_PREFIX)
