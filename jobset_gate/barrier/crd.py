"""The field that the JobSet CRD lacks, and the JSON patches that add and remove it (A2). Pure.

A patch of `spec.versions` makes the patcher its owner, because the list is atomic, and the real owner's next
server-side apply would conflict. So a second patch restores `metadata.managedFields`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.unstructured import nested

Operation = dict[str, Any]

CRD_NAME: Final = f"jobsets.{names.JOBSET_GROUP}"
VERSION: Final = "v1alpha2"
MANAGER: Final = f"{names.FIELD_MANAGER}-crd"
"""Field manager of these patches only."""
_SPEC_PROPERTIES: Final = ("schema", "openAPIV3Schema", "properties", "spec", "properties")

FIELD_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "description": (
        "Holds back the main containers of the targeted replicated jobs until the pods of all of them have started. "
        "Cannot be changed after creation. Kept by jobset-gate."
    ),
    "properties": {
        names.TIMEOUT_FIELD: {
            "type": "integer",
            "format": "int32",
            "minimum": 1,
            "nullable": True,
            "description": (
                "Seconds, counted from the first pod that has started, after which the group fails if pods are still "
                "missing. Absent or null: it waits for as long as it takes."
            ),
        },
        names.TARGETS_FIELD: {
            "type": "array",
            "items": {"type": "string"},
            "nullable": True,
            "x-kubernetes-list-type": "atomic",
            "description": "Names of the replicated jobs that start together. Absent, null or empty: all of them.",
        },
    },
}


def is_extended(crd: Mapping[str, Any]) -> bool:
    """True if every served v1alpha2 has the field with its properties, added by jobset-gate or by JobSet itself."""
    versions = _versions(crd)
    return bool(versions) and all(_has_field(version) for _, version in versions)


def can_be_extended(crd: Mapping[str, Any]) -> bool:
    """True if there is a served v1alpha2 with a schema for spec."""
    versions = _versions(crd)
    return bool(versions) and all(_properties(version) is not None for _, version in versions)


def extension(crd: Mapping[str, Any]) -> list[Operation]:
    """Patch that adds the field to this resourceVersion; empty if the field exists."""
    operations = [
        {"op": "add", "path": _path(index), "value": dict(FIELD_SCHEMA)}
        for index, version in _versions(crd)
        if not _has_field(version)
    ]
    return [_same_version(crd), *operations] if operations else []


def retraction(crd: Mapping[str, Any]) -> list[Operation]:
    """Patch that removes exactly what extension() adds; empty if it does not exist."""
    operations: list[Operation] = [
        {"op": "remove", "path": _path(index)}
        for index, version in _versions(crd)
        if (_properties(version) or {}).get(names.CONFIG_FIELD) == FIELD_SCHEMA
    ]
    return [_same_version(crd), *operations] if operations else []


def restoration(crd: Mapping[str, Any], managed_fields: Sequence[Mapping[str, Any]]) -> list[Operation]:
    """Patch that sets the CRD's managedFields."""
    # The API server ignores an empty list; a list of one empty entry clears managedFields.
    value = [dict(entry) for entry in managed_fields] or [{}]
    return [_same_version(crd), {"op": "add", "path": "/metadata/managedFields", "value": value}]


def managed_fields(crd: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The CRD's managedFields."""
    return list(crd["metadata"].get("managedFields") or [])


def is_not_owner(crd: Mapping[str, Any]) -> bool:
    """False if an earlier call crashed between its two patches."""
    return not any(map(_is_ours, managed_fields(crd)))


def managed_fields_without_us(crd: Mapping[str, Any]) -> list[dict[str, Any]]:
    """ManagedFields without MANAGER, whose fields go to the owner of spec; all of them if it owns nothing.

    Of several owners the latest that uses server-side apply, because only that one can conflict; else the latest.
    """
    if is_not_owner(crd):
        return managed_fields(crd)
    others = [entry for entry in managed_fields(crd) if not _is_ours(entry)]
    heirs = [entry for entry in others if not entry.get("subresource") and "f:spec" in entry.get("fieldsV1", {})]
    if not heirs or any("f:versions" in entry["fieldsV1"]["f:spec"] for entry in heirs):
        return others
    heir = max(heirs, key=lambda entry: (entry.get("operation") == "Apply", entry.get("time", "")))
    spec = {**heir["fieldsV1"]["f:spec"], "f:versions": {}}
    given = {**heir, "fieldsV1": {**heir["fieldsV1"], "f:spec": spec}}
    return [given if entry is heir else entry for entry in others]


def _is_ours(entry: Mapping[str, Any]) -> bool:
    return entry.get("manager") == MANAGER and not entry.get("subresource")


def _versions(crd: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    listed = crd.get("spec", {}).get("versions") or []
    return [
        (i, version) for i, version in enumerate(listed) if version.get("name") == VERSION and version.get("served")
    ]


def _properties(version: Mapping[str, Any]) -> Mapping[str, Any] | None:
    found = nested(version, *_SPEC_PROPERTIES)
    return found if isinstance(found, dict) else None


def _has_field(version: Mapping[str, Any]) -> bool:
    field = (_properties(version) or {}).get(names.CONFIG_FIELD) or {}
    return set(FIELD_SCHEMA["properties"]) <= set(field.get("properties") or {})


def _path(index: int) -> str:
    return "/".join(("/spec/versions", str(index), *_SPEC_PROPERTIES, names.CONFIG_FIELD))


def _same_version(crd: Mapping[str, Any]) -> Operation:
    return {"op": "test", "path": "/metadata/resourceVersion", "value": crd["metadata"]["resourceVersion"]}
