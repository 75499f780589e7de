"""Defaults and checks of objects by kind, and the rules of metadata: what the system fills in, keeps and counts."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from jobset_gate.fake.apiserver import kinds
from jobset_gate.fake.apiserver.kinds import NAMESPACES, ServedKind
from jobset_gate.fake.apiserver.requests import ServerState
from jobset_gate.fake.apiserver.responses import (
    Obj,
    cause,
    conflict,
    dig,
    forbidden,
    invalid,
    not_found,
)

INITIAL_NAMESPACES = ("default", "kube-node-lease", "kube-public", "kube-system")
_NAME_LABEL = "kubernetes.io/metadata.name"
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_ANY_NAME = ("rbac.authorization.k8s.io",)
_ANNOTATIONS_LIMIT = 256 * 1024
_CONFIG_LIMIT = 1024 * 1024
_NEVER_EMPTY = ("labels", "annotations", "ownerReferences", "finalizers")
_SYSTEM = (
    "name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
)  # fmt: skip
"""Set once; an update cannot change them."""


# --- Metadata ---------------------------------------------------------------------------------------------------------


def fill_metadata(state: ServerState, kind: ServedKind, obj: Obj) -> None:
    """System fields of a new object."""
    meta = obj["metadata"]
    for name in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "generation"):
        meta.pop(name, None)
    meta["uid"] = state.new_uid()
    meta["creationTimestamp"] = state.now()
    if kind.generation:
        meta["generation"] = 1


def drop_empty_metadata(obj: Obj) -> None:
    """Also managedFields: fields have no owners here."""
    obj["metadata"].pop("managedFields", None)
    for name in _NEVER_EMPTY:
        if obj["metadata"].get(name) in ([], {}):
            del obj["metadata"][name]


def keep_system_metadata(kind: ServedKind, new: Obj, live: Obj, name: str) -> None:
    """Carry system fields over from the live object. Errors: StatusError 409 for another uid or version, 422."""
    meta, was = new["metadata"], live["metadata"]
    if meta.get("uid") not in (None, "", was["uid"]):
        why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {was['uid']}"
        raise conflict(kind, name, why)
    moved = meta.get("deletionTimestamp")
    if moved is not None and moved != was.get("deletionTimestamp"):
        why = f'Invalid value: "{moved}": field is immutable'
        raise invalid(kind, name, [cause("metadata.deletionTimestamp", why)])
    if meta.get("resourceVersion") not in (None, "", "0", was["resourceVersion"]):
        raise conflict(kind, name)
    for field in _SYSTEM:
        if field in was:
            meta[field] = was[field]
        else:
            meta.pop(field, None)
    meta["resourceVersion"] = was["resourceVersion"]


def count_generation(kind: ServedKind, new: Obj, live: Obj) -> None:
    """One more generation when anything but metadata and status changed."""
    outside = {"metadata", "kind", "apiVersion"} | ({"status"} if kind.status else set())
    if kind.generation and any(new.get(name) != live.get(name) for name in (new.keys() | live.keys()) - outside):
        new["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1


def _metadata_causes(kind: ServedKind, meta: Obj) -> list[Obj]:
    name = meta.get("name", "")
    found = []
    if not name:
        found.append(cause("metadata.name", "Required value: name or generateName is required", "FieldValueRequired"))
    elif kind.group not in _ANY_NAME and (len(name) > 253 or not _SUBDOMAIN.fullmatch(name)):
        why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters"
        found.append(cause("metadata.name", f'Invalid value: "{name}": {why}'))
    for value in (meta.get("labels") or {}).values():
        if not isinstance(value, str) or len(value) > 63 or not _LABEL_VALUE.fullmatch(value):
            why = "a valid label must be 63 characters or less"
            found.append(cause("metadata.labels", f'Invalid value: "{value}": {why}'))
    size = sum(len(key) + len(str(value)) for key, value in (meta.get("annotations") or {}).items())
    if size > _ANNOTATIONS_LIMIT:
        found.append(cause("metadata.annotations", f"Too long: may not be more than {_ANNOTATIONS_LIMIT} bytes"))
    return found


# --- Kinds ------------------------------------------------------------------------------------------------------------


def default(kind: ServedKind, obj: Obj) -> None:
    """Fill in the defaults of an object that comes with a request."""
    if kind.schema is not None:
        kinds.default_custom(obj, kind.schema)
    elif step := _DEFAULTS.get(kind.key):
        step(obj)


def prepare(kind: ServedKind, obj: Obj, now: str) -> None:
    """Complete a new object, after mutating admission."""
    if kind.status and kind.key not in (("", "nodes"), ("", "namespaces")):
        obj.pop("status", None)
    if step := _PREPARE.get(kind.key):
        step(obj, now)


def require_valid(kind: ServedKind, new: Obj, old: Obj | None) -> None:
    """Errors: StatusError 422."""
    step = _CHECKS.get(kind.key)
    found = [*_metadata_causes(kind, new["metadata"]), *(step(new, old) if step else ())]
    if found:
        raise invalid(kind, new["metadata"].get("name", ""), found)


def require_open_namespace(state: ServerState, kind: ServedKind, namespace: str, name: str) -> None:
    """Refuse a creation in a namespace that is absent (404) or terminating (403)."""
    row = state.store.row(NAMESPACES, "", namespace)
    if row is None:
        raise not_found(NAMESPACES, namespace)
    if row.meta.get("deletionTimestamp"):
        text = f"namespace {namespace} is being terminated"
        causes = [{"reason": "NamespaceTerminating", "message": text, "field": "metadata.namespace"}]
        why = f"unable to create new content in namespace {namespace} because it is being terminated"
        raise forbidden(kind, name, why, causes)


def create_initial_namespaces(state: ServerState) -> None:
    for name in INITIAL_NAMESPACES:
        meta = {"name": name, "uid": state.new_uid(), "creationTimestamp": state.now()}
        namespace: Obj = {"metadata": meta}
        _prepare_namespace(namespace, state.now())
        state.store.commit(NAMESPACES, namespace)


def _prepare_namespace(namespace: Obj, _now: str) -> None:
    meta = namespace["metadata"]
    meta["labels"] = {**(meta.get("labels") or {}), _NAME_LABEL: meta["name"]}
    namespace["spec"] = {**(namespace.get("spec") or {}), "finalizers": ["kubernetes"]}
    namespace["status"] = {"phase": "Active"}


def _check_config_map(new: Obj, old: Obj | None) -> list[Obj]:
    found = []
    if old and old.get("immutable") and any(new.get(name) != old.get(name) for name in ("data", "immutable")):
        why = "Forbidden: field is immutable when `immutable` is set"
        found.append(cause("data", why, "FieldValueForbidden"))
    if sum(len(key) + len(value) for key, value in (new.get("data") or {}).items()) > _CONFIG_LIMIT:
        found.append(cause("", f"Too long: may not be more than {_CONFIG_LIMIT} bytes", "FieldValueTooLong"))
    return found


# --- Pods -------------------------------------------------------------------------------------------------------------

_CONTAINER_LISTS = ("initContainers", "containers")
_MUTABLE = frozenset(("activeDeadlineSeconds", "terminationGracePeriodSeconds", "tolerations", "schedulingGates"))
"""The only fields of a pod's spec that an update may change; of a gated pod where it runs, too."""


def default_pod(pod: Obj) -> None:
    spec = pod.get("spec")
    if isinstance(spec, dict):
        _default_pod_spec(spec)
        spec.setdefault("enableServiceLinks", True)
        if spec.get("schedulingGates") == []:
            del spec["schedulingGates"]


def _default_pod_spec(spec: Obj) -> None:
    """The defaults of a pod's or pod template's spec."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("dnsPolicy", "ClusterFirst")
    spec.setdefault("schedulerName", "default-scheduler")
    spec.setdefault("terminationGracePeriodSeconds", 30)
    spec.setdefault("securityContext", {})
    for container in (item for sort in _CONTAINER_LISTS for item in spec.get(sort) or ()):
        container.setdefault("terminationMessagePath", "/dev/termination-log")
        container.setdefault("terminationMessagePolicy", "File")
        container.setdefault("resources", {})
        image = str(container.get("image", ""))
        latest = "@" not in image and image.rpartition("/")[2].partition(":")[2] in ("", "latest")
        container.setdefault("imagePullPolicy", "Always" if latest else "IfNotPresent")
        for env in container.get("env") or ():
            if ref := (env.get("valueFrom") or {}).get("fieldRef"):
                ref.setdefault("apiVersion", "v1")
    for volume in spec.get("volumes") or ():
        for sort in ("configMap", "secret", "downwardAPI", "projected"):
            if isinstance(volume.get(sort), dict):
                volume[sort].setdefault("defaultMode", 420)


def prepare_pod(pod: Obj, now: str) -> None:
    spec = pod["spec"]
    pod["status"] = {"phase": "Pending", "qosClass": "BestEffort"}
    if spec.get("schedulingGates"):
        text = "Scheduling is blocked due to non-empty scheduling gates"
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": text}
        pod["status"]["conditions"] = [{**gated, "lastProbeTime": None, "lastTransitionTime": now}]
    spec.setdefault("serviceAccountName", "default")
    spec["serviceAccount"] = spec["serviceAccountName"]
    spec.setdefault("priority", 0)
    spec.setdefault("preemptionPolicy", "PreemptLowerPriority")


def _check_pod(new: Obj, old: Obj | None) -> list[Obj]:
    spec = new.get("spec") or {}
    if old is None:
        return _pod_spec_causes(spec, "spec")
    before = {gate["name"] for gate in old["spec"].get("schedulingGates") or ()}
    found = [
        cause(
            f"spec.schedulingGates[{place}].name",
            f"Forbidden: only deletion is allowed, but found new scheduling gate '{gate['name']}'",
            "FieldValueForbidden",
        )
        for place, gate in enumerate(spec.get("schedulingGates") or ())
        if gate["name"] not in before
    ]
    mutable = _MUTABLE | {"nodeSelector", "affinity"} if before else _MUTABLE
    if not found and _immutable_part(spec, mutable) != _immutable_part(old["spec"], mutable):
        why = "Forbidden: pod updates may not change fields other than `spec.containers[*].image`,`spec.tolerations`"
        found.append(cause("spec", why, "FieldValueForbidden"))
    return found


def _immutable_part(spec: Obj, mutable: frozenset[str]) -> Obj:
    kept: Obj = {key: value for key, value in spec.items() if key not in mutable}
    for sort in _CONTAINER_LISTS:
        if sort in kept:
            kept[sort] = [{**container, "image": ""} for container in kept[sort]]
    return kept


def _pod_spec_causes(spec: Any, path: str) -> list[Obj]:
    """What a new pod or pod template must have."""
    if not isinstance(spec, dict) or not spec.get("containers"):
        return [cause(f"{path}.containers", "Required value", "FieldValueRequired")]
    return [
        cause(f"{path}.{sort}[{place}].{field}", "Required value", "FieldValueRequired")
        for sort in _CONTAINER_LISTS
        for place, container in enumerate(spec.get(sort) or ())
        for field in ("image", "name")
        if not container.get(field)
    ]


# --- Jobs -------------------------------------------------------------------------------------------------------------


def default_job(job: Obj) -> None:
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    defaults = {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    policy = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    for name, value in {**defaults, "manualSelector": False, "podReplacementPolicy": policy}.items():
        if spec.get(name) is None:
            spec[name] = value
    template = dig(spec, "template", "spec")
    if isinstance(template, dict):
        _default_pod_spec(template)


def prepare_job(job: Obj, _now: str) -> None:
    """The unique selector: every Job finds its own pods by its uid."""
    job["status"] = {}
    spec, uid, name = job["spec"], job["metadata"]["uid"], job["metadata"]["name"]
    meta = spec["template"].setdefault("metadata", {})
    meta["labels"] = {
        **(meta.get("labels") or {}),
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}


def _check_job(new: Obj, old: Obj | None) -> list[Obj]:
    spec = new.get("spec") or {}
    if old is None:
        return _pod_spec_causes(dig(spec, "template", "spec"), "spec.template.spec")
    changed = spec.get("template") != old["spec"]["template"]
    if changed and not (old["spec"].get("suspend") and not dig(old, "status", "startTime")):
        return [cause("spec.template", "Invalid value: ...: field is immutable")]
    return []


# --- Tables -----------------------------------------------------------------------------------------------------------

_DEFAULTS: dict[tuple[str, str], Callable[[Obj], None]] = {
    ("", "pods"): default_pod,
    ("batch", "jobs"): default_job,
    ("apiextensions.k8s.io", "customresourcedefinitions"): kinds.default_crd,
}
_PREPARE: dict[tuple[str, str], Callable[[Obj, str], None]] = {
    ("", "pods"): prepare_pod,
    ("", "namespaces"): _prepare_namespace,
    ("batch", "jobs"): prepare_job,
}
_CHECKS: dict[tuple[str, str], Callable[[Obj, Obj | None], list[Obj]]] = {
    ("", "pods"): _check_pod,
    ("", "configmaps"): _check_config_map,
    ("batch", "jobs"): _check_job,
}
