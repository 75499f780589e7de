"""The JobSet CRD around a Job template's schema: loose, or that of an API server's own OpenAPI document.

Validation rules are left out but the types: the real CRD is tested in e2e.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from jobset_gate import names
from jobset_gate.fake.objects import Json

JOB_TEMPLATE = "io.k8s.api.batch.v1.JobTemplateSpec"

_STRING: Json = {"type": "string"}
_BOOL: Json = {"type": "boolean"}
_INT32: Json = {"type": "integer", "format": "int32"}
_NATURAL: Json = {"type": "integer", "format": "int32", "minimum": 0}
_NAMES: Json = {"type": "array", "items": _STRING, "x-kubernetes-list-type": "atomic"}
_STRINGS: Json = {"type": "object", "additionalProperties": _STRING}
_LOOSE: Json = {"x-kubernetes-preserve-unknown-fields": True}


def jobset_crd(document: Json) -> Json:
    """For an API server whose /openapi/v3/apis/batch/v1 is `document`; {} for one that has none."""
    schemas = (document.get("components") or {}).get("schemas") or {}
    template = _structural(schemas[JOB_TEMPLATE], schemas) if JOB_TEMPLATE in schemas else _loose_job_template()
    properties = {"apiVersion": _STRING, "kind": _STRING, "metadata": {"type": "object"}}
    schema = _object({**properties, "spec": _spec(template), "status": _status()})
    version = {
        "name": names.JOBSET_VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "metadata": {"name": names.JOBSET_CRD},
        "spec": {
            "group": names.JOBSET_GROUP,
            "names": {"kind": "JobSet", "listKind": "JobSetList", "plural": "jobsets", "singular": "jobset"},
            "scope": "Namespaced",
            "versions": [version],
        },
    }


def _spec(job_template: Json) -> Json:
    needed = _object({"name": _STRING, "status": _enum("Ready", "Complete")}, "name", "status")
    replicated_job = _object(
        {
            "name": _STRING,
            "groupName": _STRING | {"default": "default"},
            "replicas": _NATURAL | {"default": 1},
            "template": job_template,
            "dependsOn": _map_list(needed, "name") | {"maxItems": 5},
        },
        "name",
        "template",
    )
    rule = _object(
        {
            "name": _STRING,
            "action": _STRING,
            "onJobFailureReasons": {"type": "array", "items": _STRING},
            "onJobFailureMessagePatterns": {"type": "array", "items": _STRING},
            "targetReplicatedJobs": _NAMES,
        },
        "action",
        "name",
    )
    failure_policy = {
        "maxRestarts": _INT32,
        "restartStrategy": _enum("Recreate", "BlockingRecreate", "InPlaceRestart") | {"default": "Recreate"},
        "rules": {"type": "array", "items": rule},
    }
    network = {"enableDNSHostnames": _BOOL, "publishNotReadyAddresses": _BOOL, "subdomain": _STRING}
    coordinator = {"replicatedJob": _STRING, "jobIndex": {"type": "integer"}, "podIndex": {"type": "integer"}}
    return _object(
        {
            "coordinator": _object(coordinator, "replicatedJob"),
            "failurePolicy": _object(failure_policy),
            "managedBy": _STRING,
            "network": _object(network),
            "replicatedJobs": _map_list(replicated_job, "name"),
            "startupPolicy": _object({"startupPolicyOrder": _enum("AnyOrder", "InOrder")}, "startupPolicyOrder"),
            "successPolicy": _object({"operator": _enum("All", "Any"), "targetReplicatedJobs": _NAMES}, "operator"),
            "suspend": _BOOL,
            "ttlSecondsAfterFinished": _NATURAL,
            "volumeClaimPolicies": {"type": "array", "items": _object({}) | _LOOSE},
        }
    )


def _status() -> Json:
    condition = _object(
        {
            "type": {"type": "string", "maxLength": 316},
            "status": _enum("True", "False", "Unknown"),
            "reason": {"type": "string", "minLength": 1, "maxLength": 1024},
            "message": {"type": "string", "maxLength": 32768},
            "lastTransitionTime": {"type": "string", "format": "date-time"},
            "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        },
        "lastTransitionTime",
        "message",
        "reason",
        "status",
        "type",
    )
    counts = ("active", "failed", "ready", "succeeded", "suspended")
    job = _object({"name": _STRING, **dict.fromkeys(counts, _INT32)}, "name", *counts)
    return _object(
        {
            "conditions": _map_list(condition, "type"),
            "replicatedJobsStatus": _map_list(job, "name"),
            "restarts": _INT32,
            "restartsCountTowardsMax": _INT32,
            "terminalState": _STRING,
        }
    )


def _object(properties: Json, *required: str) -> Json:
    return {"type": "object", "properties": properties} | ({"required": list(required)} if required else {})


def _enum(*values: str) -> Json:
    return {"type": "string", "enum": list(values)}


def _map_list(items: Json, *keys: str) -> Json:
    """A list that server-side apply merges by `keys`, which are required where they have no default."""
    required = {key for key in keys if "default" not in items["properties"][key]} | {*items.get("required", ())}
    return {
        "type": "array",
        "items": items | ({"required": sorted(required)} if required else {}),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }


def _loose_job_template() -> Json:
    """For an API server without an OpenAPI document: lists that merge by key, and anything else unchecked."""

    def loose(**properties: Json) -> Json:
        return _object(properties) | _LOOSE

    container = loose(
        name=_STRING,
        env=_map_list(loose(name=_STRING), "name"),
        volumeMounts=_map_list(loose(mountPath=_STRING), "mountPath"),
    )
    pod = loose(
        initContainers=_map_list(container, "name"),
        containers=_map_list(container, "name"),
        volumes=_map_list(loose(name=_STRING), "name"),
        schedulingGates=_map_list(loose(name=_STRING), "name"),
    )
    meta = loose(labels=_STRINGS, annotations=_STRINGS)
    return loose(metadata=meta, spec=loose(template=loose(metadata=meta, spec=pod)))


# --- OpenAPI to a structural schema -----------------------------------------------------------------------------------

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
_SPECIAL: Mapping[str, Json] = {
    "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta": {
        "type": "object",
        "properties": {
            "name": _STRING,
            "namespace": _STRING,
            "labels": _STRINGS,
            "annotations": _STRINGS,
            "finalizers": {"type": "array", "items": _STRING},
        },
    },
    "io.k8s.apimachinery.pkg.util.intstr.IntOrString": _INT_OR_STRING,
    "io.k8s.apimachinery.pkg.api.resource.Quantity": _INT_OR_STRING,
}
_UNUSED_FORMATS = ("byte", "int-or-string")


def _structural(schema: Mapping[str, Any], schemas: Mapping[str, Json]) -> Json:
    """References inlined, list types kept, descriptions and what a structural schema may not have left out."""
    reference = _reference(schema)
    if reference is not None:
        return dict(_SPECIAL[reference]) if reference in _SPECIAL else _structural(schemas[reference], schemas)
    built: Json = {key: schema[key] for key in _KEPT if key in schema}
    if built.get("format") in _UNUSED_FORMATS:
        del built["format"]
    if "properties" in schema:
        built["properties"] = {name: _property(part, schemas) for name, part in schema["properties"].items()}
    if "items" in schema:
        built["items"] = _structural(schema["items"], schemas)
        _default_map_keys(built, schema, schemas)
    if isinstance(schema.get("additionalProperties"), Mapping):
        built["additionalProperties"] = _structural(schema["additionalProperties"], schemas)
    if "type" not in built:
        built |= _LOOSE
    return built


def _property(part: Mapping[str, Any], schemas: Mapping[str, Json]) -> Json:
    """A default that is a Go zero value comes from the type, not from the API: required fields would be optional."""
    built = _structural(part, schemas)
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
