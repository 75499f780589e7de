"""What the system fills in, keeps and counts of metadata, and the defaults of pods and Jobs."""

from __future__ import annotations

from jobset_gate_demo.fake.apiserver import kinds
from jobset_gate_demo.fake.apiserver.kinds import ServedKind
from jobset_gate_demo.fake.apiserver.requests import ServerState
from jobset_gate_demo.fake.apiserver.responses import Obj, conflict

_NEVER_EMPTY = ("labels", "annotations", "ownerReferences", "finalizers")
_SYSTEM = (
    "name", "namespace", "uid", "creationTimestamp", "generation", "deletionTimestamp", "deletionGracePeriodSeconds",
    "managedFields",
)  # fmt: skip
"""An update cannot change them."""
_PODS, _JOBS, _CONFIG_MAPS = ("", "pods"), ("batch", "jobs"), ("", "configmaps")


# --- Metadata ---------------------------------------------------------------------------------------------------------


def fill_metadata(state: ServerState, kind: ServedKind, obj: Obj) -> None:
    """Name and system fields of a new object."""
    meta = obj["metadata"]
    if not meta.get("name"):
        meta["name"] = state.new_name(meta["generateName"])
    for name in ("resourceVersion", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        meta.pop(name, None)
    meta["uid"] = state.new_uid()
    meta["creationTimestamp"] = state.now()
    if kind.generation:
        meta["generation"] = 1


def drop_empty_metadata(obj: Obj) -> None:
    """Also managedFields, which are the server's own."""
    obj["metadata"].pop("managedFields", None)
    for name in _NEVER_EMPTY:
        if obj["metadata"].get(name) in ([], {}):
            del obj["metadata"][name]


def keep_system_metadata(kind: ServedKind, new: Obj, live: Obj, name: str) -> None:
    """Carry system fields over from the live object. Errors: StatusError 409 for another uid or version."""
    meta, was = new["metadata"], live["metadata"]
    if meta.get("uid") not in (None, "", was["uid"]):
        raise conflict(kind, name, f"the UID is {was['uid']}")
    if meta.get("resourceVersion") not in (None, "", "0", was["resourceVersion"]):
        raise conflict(kind, name)
    for field in _SYSTEM:
        if field in was:
            meta[field] = was[field]
        else:
            meta.pop(field, None)
    meta["resourceVersion"] = was["resourceVersion"]


def date_write(kind: ServedKind, obj: Obj, now: str) -> None:
    """Of managedFields only the time of the last write, of pods and ConfigMaps: fields have no owners here."""
    if kind.key in (_PODS, _CONFIG_MAPS):
        obj["metadata"]["managedFields"] = [{"operation": "Update", "time": now}]


def count_generation(kind: ServedKind, new: Obj, live: Obj) -> None:
    """One more generation when anything but metadata and status changed."""
    outside = {"metadata", "kind", "apiVersion"} | ({"status"} if kind.status else set())
    if kind.generation and any(new.get(name) != live.get(name) for name in (new.keys() | live.keys()) - outside):
        new["metadata"]["generation"] = live["metadata"].get("generation", 0) + 1


# --- Kinds ------------------------------------------------------------------------------------------------------------


def default(kind: ServedKind, obj: Obj) -> None:
    """Fill in the defaults of an object that comes with a request."""
    if kind.schema is not None:
        kinds.default_custom(obj, kind.schema)
    elif kind.key == _PODS:
        default_pod(obj)
    elif kind.key == _JOBS:
        default_job(obj)


def prepare(kind: ServedKind, obj: Obj, now: str) -> None:
    """Complete a new object, after mutating admission."""
    if kind.status and kind.key != ("", "nodes"):
        obj.pop("status", None)
    date_write(kind, obj, now)
    if kind.key == _PODS:
        prepare_pod(obj, now)
    elif kind.key == _JOBS:
        prepare_job(obj)


def default_pod(pod: Obj) -> None:
    _default_pod_spec(pod["spec"])
    if pod["spec"].get("schedulingGates") == []:
        del pod["spec"]["schedulingGates"]


def _default_pod_spec(spec: Obj) -> None:
    """The defaults of a pod's or pod template's spec that someone here reads."""
    spec.setdefault("restartPolicy", "Always")
    spec.setdefault("schedulerName", "default-scheduler")


def prepare_pod(pod: Obj, now: str) -> None:
    pod["status"] = {"phase": "Pending"}
    if pod["spec"].get("schedulingGates"):
        text = "Scheduling is blocked due to non-empty scheduling gates"
        gated = {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated", "message": text}
        pod["status"]["conditions"] = [{**gated, "lastProbeTime": None, "lastTransitionTime": now}]


def default_job(job: Obj) -> None:
    spec = job["spec"]
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    defaults = {"parallelism": 1, "backoffLimit": 6, "completionMode": "NonIndexed", "suspend": False}
    for name, value in defaults.items():
        if spec.get(name) is None:
            spec[name] = value
    _default_pod_spec(spec["template"]["spec"])


def prepare_job(job: Obj) -> None:
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
