"""metadata.managedFields of a pod as kube-apiserver writes them: a third of the bytes that a decoder has to skip."""

from __future__ import annotations

from typing import Any

import msgspec

Json = dict[str, Any]

_KEYS = {
    "conditions": ("type",),
    "containers": ("name",),
    "env": ("name",),
    "initContainers": ("name",),
    "ownerReferences": ("uid",),
    "podIPs": ("ip",),
    "ports": ("containerPort", "protocol"),
    "volumeMounts": ("mountPath",),
    "volumes": ("name",),
}
_ALWAYS = ("metadata", "spec", "status", "containers")
"""Fields that exist even when empty, so that no manager owns their existence."""
_SYSTEM = ("name", "namespace", "creationTimestamp", "uid", "generation", "resourceVersion")
_ATOMIC = ("fieldRef", "nodeSelector", "sources")


def entry(manager: str, pod: Json, *parts: str, subresource: str = "", time: str) -> Json:
    """One entry: the manager owns all fields of these parts of the pod."""
    found = {"manager": manager, "operation": "Update", "apiVersion": "v1", "time": time, "fieldsType": "FieldsV1"}
    tree = {f"f:{part}": _owned(part, _without_system(part, pod[part])) for part in parts}
    return {**found, "fieldsV1": tree} | ({"subresource": subresource} if subresource else {})


def _without_system(part: str, value: Json) -> Json:
    return {name: item for name, item in value.items() if part != "metadata" or name not in _SYSTEM}


def _owned(name: str, value: Any) -> Json:
    exists: Json = {} if name in _ALWAYS else {".": {}}
    if isinstance(value, dict) and value and name not in _ATOMIC:
        return {**exists, **{f"f:{key}": _owned(key, item) for key, item in value.items()}}
    if isinstance(value, list) and value and name == "finalizers":
        return {**exists, **{f"v:{_text(item)}": {} for item in value}}
    if isinstance(value, list) and value and name in _KEYS:
        return {**exists, **{f"k:{_text(_key(name, item))}": _owned("", item) for item in value}}
    return {}


def _key(name: str, item: Json) -> Json:
    return {key: item[key] for key in _KEYS[name] if key in item}


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
