"""The JobSet CRD stand-in: JobSet's fields with their types and defaults, and Job templates as they come.

The real CRD, with its validation rules and the schema of Job templates, is tested in e2e.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from jobset_gate import names
from jobset_gate.fake.objects import Json, holds
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, NotFound
from jobset_gate.kube.resources import CRDS, JOBSETS

POLL_SECONDS = 0.05

_STRING: Json = {"type": "string"}
_BOOL: Json = {"type": "boolean"}
_INT32: Json = {"type": "integer", "format": "int32"}
_NATURAL: Json = {"type": "integer", "format": "int32", "minimum": 0}
_NAMES: Json = {"type": "array", "items": _STRING, "x-kubernetes-list-type": "atomic"}
_STRINGS: Json = {"type": "object", "additionalProperties": _STRING}
_LOOSE: Json = {"x-kubernetes-preserve-unknown-fields": True}


def manifest() -> Json:
    properties = {"apiVersion": _STRING, "kind": _STRING, "metadata": {"type": "object"}}
    version = {
        "name": names.JOBSET_VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": _object({**properties, "spec": _spec(_job_template()), "status": _status()})},
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


async def install(client: Client) -> Json:
    """Create it unless it exists, and wait until JobSets are served; the stored CRD."""
    with suppress(AlreadyExists):
        await client.create(CRDS, manifest(), field_manager="jobset")
    return await wait_served(client)


async def wait_served(client: Client) -> Json:
    """The stored CRD, once JobSets can be listed."""
    while True:
        crd = await client.get(CRDS, names.JOBSET_CRD)
        if holds((crd.get("status") or {}).get("conditions"), "Established"):
            break
        await asyncio.sleep(POLL_SECONDS)
    while True:
        try:
            await client.list(JOBSETS, limit=1)
        except NotFound:
            await asyncio.sleep(POLL_SECONDS)
            continue
        return crd


# --- Schema -----------------------------------------------------------------------------------------------------------


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


def _job_template() -> Json:
    """Lists that merge by key, and anything else unchecked."""

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
