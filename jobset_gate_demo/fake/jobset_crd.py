"""The JobSet CRD stand-in: JobSet's fields, the defaults that JobSet's webhook sets, and Job templates as they come.

The real CRD, with the schema of Job templates, and JobSet's webhooks, which refuse what is invalid, are tested in e2e.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import AlreadyExists, NotFound
from jobset_gate.kube.resources import CRDS, JOBSETS, Resource
from jobset_gate_demo.fake.objects import Json, holds

POLL_SECONDS = 0.05

_STRING: Json = {"type": "string"}
_BOOL: Json = {"type": "boolean"}
_INT32: Json = {"type": "integer", "format": "int32"}
_STRINGS: Json = {"type": "object", "additionalProperties": _STRING}


def manifest() -> Json:
    version = {
        "name": names.JOBSET_VERSION,
        "served": True,
        "storage": True,
        "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": _schema()},
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
    return await until_served(client, names.JOBSET_CRD, JOBSETS)


async def until_served(client: Client, name: str, resource: Resource) -> Json:
    """The CRD of that name, once its objects can be listed."""
    while True:
        with suppress(NotFound):
            crd = await client.get(CRDS, name)
            if holds((crd.get("status") or {}).get("conditions"), "Established"):
                await client.list(resource, limit=1)
                return crd
        await asyncio.sleep(POLL_SECONDS)


# --- Schema -----------------------------------------------------------------------------------------------------------


def _schema() -> Json:
    return _object(apiVersion=_STRING, kind=_STRING, metadata={"type": "object"}, spec=_spec(), status=_status())


def _spec() -> Json:
    replicated_job = _object(
        name=_STRING,
        groupName=_STRING | {"default": "default"},
        replicas=_INT32 | {"minimum": 0, "default": 1},
        template=_job_template(),
        dependsOn=_map_list(_object(name=_STRING, status=_STRING), "name"),
    )
    network = _object(
        enableDNSHostnames=_BOOL | {"default": True},
        publishNotReadyAddresses=_BOOL | {"default": True},
        subdomain=_STRING,
    )
    return _object(
        coordinator=_loose(),
        failurePolicy=_loose(maxRestarts=_INT32, restartStrategy=_STRING | {"default": "Recreate"}),
        managedBy=_STRING,
        network=network | {"default": {}},
        replicatedJobs=_map_list(replicated_job, "name"),
        startupPolicy=_loose() | {"default": {"startupPolicyOrder": "AnyOrder"}},
        successPolicy=_loose() | {"default": {"operator": "All"}},
        suspend=_BOOL,
        ttlSecondsAfterFinished=_INT32,
        volumeClaimPolicies={"type": "array", "items": _loose()},
    )


def _status() -> Json:
    """Conditions as strict as JobSet's, and the rest as it comes."""
    condition = _object(
        type={"type": "string", "maxLength": 316},
        status=_STRING,
        reason={"type": "string", "minLength": 1, "maxLength": 1024},
        message={"type": "string", "maxLength": 32768},
        lastTransitionTime={"type": "string", "format": "date-time"},
        observedGeneration={"type": "integer", "format": "int64"},
    )
    condition["required"] = ["lastTransitionTime", "message", "reason", "status"]
    return _loose(conditions=_map_list(condition, "type"))


def _job_template() -> Json:
    """Lists that merge by key, and anything else unchecked. Go writes empty structs, so the real webhook adds them."""
    container = _loose(
        name=_STRING,
        env=_map_list(_loose(name=_STRING), "name"),
        resources=_loose() | {"default": {}},
        volumeMounts=_map_list(_loose(mountPath=_STRING), "mountPath"),
    )
    pod = _loose(
        initContainers=_map_list(container, "name"),
        containers=_map_list(container, "name"),
        restartPolicy=_STRING | {"default": "OnFailure"},
        schedulingGates=_map_list(_loose(name=_STRING), "name"),
        volumes=_map_list(_loose(name=_STRING), "name"),
    )
    meta = _loose(labels=_STRINGS, annotations=_STRINGS) | {"default": {}}
    completion_mode = _STRING | {"default": "Indexed"}
    return _loose(metadata=meta, spec=_loose(completionMode=completion_mode, template=_loose(metadata=meta, spec=pod)))


def _object(**properties: Json) -> Json:
    return {"type": "object", "properties": properties}


def _loose(**properties: Json) -> Json:
    """An object that may have further fields."""
    return _object(**properties) | {"x-kubernetes-preserve-unknown-fields": True}


def _map_list(items: Json, key: str) -> Json:
    """A list that server-side apply merges by `key`."""
    fields: dict[str, Any] = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": [key]}
    return {"type": "array", "items": items | {"required": [*items.get("required", ()), key]}, **fields}
