"""A Job template's schema without detail, for an API server that has no OpenAPI document of batch/v1.

It names the lists that merge by key, since server-side apply depends on them, and takes everything else as it comes.
"""

from __future__ import annotations

from jobset_gate.fake.objects import Json

_ANY: Json = {"x-kubernetes-preserve-unknown-fields": True}
_STRINGS: Json = {"type": "object", "additionalProperties": {"type": "string"}}


def job_template() -> Json:
    job = _open({"template": _open({"metadata": _meta(), "spec": _pod()})})
    return _open({"metadata": _meta(), "spec": job})


def claim_spec() -> Json:
    return _open({})


def _pod() -> Json:
    return _open(
        {
            "initContainers": _map_list(_container(), "name"),
            "containers": _map_list(_container(), "name"),
            "volumes": _map_list(_open({"name": {"type": "string"}}), "name"),
            "schedulingGates": _map_list(_open({"name": {"type": "string"}}), "name"),
            "imagePullSecrets": _map_list(_open({"name": {"type": "string", "default": ""}}), "name"),
            "hostAliases": _map_list(_open({"ip": {"type": "string"}}), "ip"),
            "tolerations": {"type": "array", "items": _open({}), "x-kubernetes-list-type": "atomic"},
            "nodeSelector": _STRINGS | {"x-kubernetes-map-type": "atomic"},
        }
    )


def _container() -> Json:
    text: Json = {"type": "string"}
    port = _open({"containerPort": {"type": "integer"}, "protocol": text | {"default": "TCP"}})
    return _open(
        {
            "name": text,
            "env": _map_list(_open({"name": text}), "name"),
            "volumeMounts": _map_list(_open({"mountPath": text}), "mountPath"),
            "volumeDevices": _map_list(_open({"devicePath": text}), "devicePath"),
            "ports": _map_list(port, "containerPort", "protocol"),
        }
    )


def _meta() -> Json:
    return _open({"labels": _STRINGS, "annotations": _STRINGS})


def _open(properties: Json) -> Json:
    return {"type": "object", "properties": properties} | _ANY


def _map_list(items: Json, *keys: str) -> Json:
    required = [key for key in keys if "default" not in items["properties"][key]]
    return {
        "type": "array",
        "items": items | ({"required": required} if required else {}),
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": list(keys),
    }
