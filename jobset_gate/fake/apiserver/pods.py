"""Pods: defaults, their first status, and what of a pod may still change."""

from __future__ import annotations

from typing import Any

from jobset_gate.fake.apiserver import gated
from jobset_gate.fake.apiserver.encoding import Obj, dig
from jobset_gate.fake.apiserver.status_errors import cause

_SPEC_DEFAULTS: Obj = {
    "restartPolicy": "Always",
    "dnsPolicy": "ClusterFirst",
    "schedulerName": "default-scheduler",
    "terminationGracePeriodSeconds": 30,
}
_CONTAINER_DEFAULTS: Obj = {
    "terminationMessagePath": "/dev/termination-log",
    "terminationMessagePolicy": "File",
}
#: The only fields of a pod's spec that an update may change.
_MUTABLE = frozenset(("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"))
_GATED = _MUTABLE | {"nodeSelector", "affinity"}
_CONTAINER_LISTS = ("initContainers", "containers")


#: What the admission plugins of a plain cluster add to every pod.
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{what}", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    for what in ("not-ready", "unreachable")
]


def default(pod: Obj) -> None:
    spec = pod.get("spec")
    if isinstance(spec, dict):
        default_spec(spec)
        spec.setdefault("enableServiceLinks", True)
        if spec.get("schedulingGates") == []:
            del spec["schedulingGates"]
    for condition in dig(pod, "status", "conditions") or ():
        condition.setdefault("lastProbeTime", None)
        condition.setdefault("lastTransitionTime", None)


def default_spec(spec: Obj) -> None:
    """The defaults of a pod's or pod template's spec."""
    for name, value in _SPEC_DEFAULTS.items():
        spec.setdefault(name, value)
    spec.setdefault("securityContext", {})
    for sort in _CONTAINER_LISTS:
        for container in spec.get(sort) or ():
            _default_container(container)
    for volume in spec.get("volumes") or ():
        _default_volume(volume)


def _default_container(container: Obj) -> None:
    for name, value in _CONTAINER_DEFAULTS.items():
        container.setdefault(name, value)
    container.setdefault("resources", {})
    image = str(container.get("image", ""))
    latest = "@" not in image and image.rpartition("/")[2].partition(":")[2] in ("", "latest")
    container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
    for port in container.get("ports") or ():
        port.setdefault("protocol", "TCP")
    for env in container.get("env") or ():
        if ref := (env.get("valueFrom") or {}).get("fieldRef"):
            ref.setdefault("apiVersion", "v1")


def _default_volume(volume: Obj) -> None:
    for sort in ("configMap", "secret", "downwardAPI", "projected"):
        source = volume.get(sort)
        if isinstance(source, dict):
            source.setdefault("defaultMode", 420)
            for item in (source, *(part.get("downwardAPI") or {} for part in source.get("sources") or ())):
                _default_items(item)


def _default_items(source: Obj) -> None:
    for item in source.get("items") or ():
        if isinstance(item.get("fieldRef"), dict):
            item["fieldRef"].setdefault("apiVersion", "v1")


def prepare(pod: Obj, now: str) -> None:
    spec = pod["spec"]
    pod["status"] = {"phase": "Pending", "qosClass": _qos(spec)}
    if spec.get("schedulingGates"):
        text = "Scheduling is blocked due to non-empty scheduling gates"
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": text}
        pod["status"]["conditions"] = [{**gated, "lastProbeTime": None, "lastTransitionTime": now}]
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")
    have = {(item.get("key"), item.get("effect")) for item in spec.get("tolerations") or ()}
    added = [dict(item) for item in _TOLERATIONS if (item["key"], item["effect"]) not in have]
    spec["tolerations"] = [*(spec.get("tolerations") or ()), *added]


def _qos(spec: Obj) -> str:
    containers = [*(spec.get("initContainers") or ()), *(spec.get("containers") or ())]
    resources = [container.get("resources") or {} for container in containers]
    if not any(part.get("requests") or part.get("limits") for part in resources):
        return "BestEffort"
    return "Guaranteed" if all(_guaranteed(part) for part in resources) else "Burstable"


def _guaranteed(resources: Obj) -> bool:
    limits, requests = resources.get("limits") or {}, resources.get("requests") or {}
    return all(name in limits and requests.get(name, limits[name]) == limits[name] for name in ("cpu", "memory"))


def check(new: Obj, old: Obj | None) -> list[Obj]:
    spec = new.get("spec") or {}
    if old is None:
        return [*spec_problems(spec, "spec"), *gated.new_problems(spec)]
    if found := gated.change_problems(spec, old["spec"]):
        return found
    mutable = _GATED if old["spec"].get("schedulingGates") else _MUTABLE
    if _fixed(spec, mutable) == _fixed(old["spec"], mutable):
        return []
    return [cause("spec", "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,"
                  "`spec.initContainers[*].image`,`spec.activeDeadlineSeconds`,`spec.tolerations` (only additions to "
                  "existing tolerations),`spec.terminationGracePeriodSeconds`", "FieldValueForbidden")]  # fmt: skip


def _fixed(spec: Obj, mutable: frozenset[str]) -> Obj:
    kept: Obj = {key: value for key, value in spec.items() if key not in mutable}
    for sort in _CONTAINER_LISTS:
        if sort in kept:
            kept[sort] = [{**container, "image": ""} for container in kept[sort]]
    return kept


def spec_problems(spec: Any, path: str) -> list[Obj]:
    """What a new pod or pod template must have."""
    if not isinstance(spec, dict) or not spec.get("containers"):
        return [cause(f"{path}.containers", "Required value", "FieldValueRequired")]
    found = []
    names: set[str] = set()
    for sort in _CONTAINER_LISTS:
        for place, container in enumerate(spec.get(sort) or ()):
            at = f"{path}.{sort}[{place}]"
            if not container.get("image"):
                found.append(cause(f"{at}.image", "Required value", "FieldValueRequired"))
            name = container.get("name", "")
            if not name:
                found.append(cause(f"{at}.name", "Required value", "FieldValueRequired"))
            elif name in names:
                found.append(cause(f"{at}.name", f'Duplicate value: "{name}"', "FieldValueDuplicate"))
            names.add(name)
    return [*found, *gated.problems(spec, path), *_mount_problems(spec, path)]


def _mount_problems(spec: Obj, path: str) -> list[Obj]:
    volumes = {volume.get("name") for volume in spec.get("volumes") or ()}
    return [
        cause(
            f"{path}.{sort}[{place}].volumeMounts[{index}].name",
            f'Not found: "{mount.get("name")}"',
            "FieldValueNotFound",
        )
        for sort in _CONTAINER_LISTS
        for place, container in enumerate(spec.get(sort) or ())
        for index, mount in enumerate(container.get("volumeMounts") or ())
        if mount.get("name") not in volumes
    ]
