"""What single kinds demand beyond the rules of all: their defaults, what creation resets, what may not change."""

from __future__ import annotations

from collections.abc import Callable

from jobset_gate.fake.apiserver import crds, custom, jobs, namespaces, pods, small
from jobset_gate.fake.apiserver.encoding import Obj
from jobset_gate.fake.apiserver.kinds import ServedKind

#: Fills in defaults, whenever an object is read from a request.
_DEFAULTS: dict[tuple[str, str], Callable[[Obj], None]] = {
    ("", "pods"): pods.default,
    ("", "services"): small.default_service,
    ("batch", "jobs"): jobs.default,
    ("apiextensions.k8s.io", "customresourcedefinitions"): crds.default,
}
#: Completes a new object after admission; (object, time).
_PREPARE: dict[tuple[str, str], Callable[[Obj, str], None]] = {
    ("", "pods"): pods.prepare,
    ("", "namespaces"): namespaces.prepare,
    ("", "events"): small.prepare_event,
    ("", "services"): small.prepare_service,
    ("batch", "jobs"): jobs.prepare,
}
#: (new, old or None) -> causes of a 422.
_CHECKS: dict[tuple[str, str], Callable[[Obj, Obj | None], list[Obj]]] = {
    ("", "pods"): pods.check,
    ("batch", "jobs"): jobs.check,
    ("", "configmaps"): small.check_config_map,
    ("coordination.k8s.io", "leases"): small.check_lease,
}
#: Kinds whose status may come with their creation.
_KEEPS_STATUS = frozenset([("", "nodes"), ("", "namespaces")])


def default(kind: ServedKind, obj: Obj) -> None:
    if kind.custom:
        custom.default(kind, obj)
    elif step := _DEFAULTS.get(kind.key):
        step(obj)


def prepare(kind: ServedKind, obj: Obj, now: str) -> None:
    """A new object, after mutating admission."""
    if kind.status and kind.key not in _KEEPS_STATUS:
        obj.pop("status", None)
    if step := _PREPARE.get(kind.key):
        step(obj, now)


def check(kind: ServedKind, new: Obj, old: Obj | None) -> list[Obj]:
    if kind.custom:
        return custom.check(kind, new, old)
    step = _CHECKS.get(kind.key)
    return step(new, old) if step else []


def confine(kind: ServedKind, new: Obj, live: Obj, subresource: str) -> Obj:
    """An update may only touch its own side: the status endpoint the status, the main one the rest."""
    if subresource != "status":
        return _with_status_of(live, new) if kind.status else new
    kept = {key: value for key, value in live.items() if key not in ("status", "metadata")}
    if "status" in new:
        kept["status"] = new["status"]
    kept["metadata"] = _status_metadata(kind, new["metadata"], live["metadata"])
    return kept


def _with_status_of(live: Obj, new: Obj) -> Obj:
    kept = {key: value for key, value in new.items() if key != "status"}
    if "status" in live:
        kept["status"] = live["status"]
    return kept


def _status_metadata(kind: ServedKind, new: Obj, live: Obj) -> Obj:
    """Built-in kinds let the status endpoint change labels and annotations; custom ones nothing."""
    meta = dict(live) if kind.custom else {**new}
    for name in ("managedFields", "ownerReferences") if not kind.custom else ("managedFields",):
        source = new if name == "managedFields" else live
        if name in source:
            meta[name] = source[name]
        else:
            meta.pop(name, None)
    return meta
