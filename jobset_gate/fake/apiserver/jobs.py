"""Jobs: defaults, the selector and labels made for them, and what may change while."""

from __future__ import annotations

from typing import Any

from jobset_gate.fake.apiserver import pods
from jobset_gate.fake.apiserver.encoding import Obj, copy, dig
from jobset_gate.fake.apiserver.status_errors import cause

_IMMUTABLE = (
    "selector",
    "completionMode",
    "podFailurePolicy",
    "backoffLimitPerIndex",
    "managedBy",
    "successPolicy",
    "manualSelector",
)
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates", "affinity")


def default(job: Obj) -> None:
    spec = job.get("spec")
    if not isinstance(spec, dict):
        return
    if spec.get("completions") is None and spec.get("parallelism") is None:
        spec["completions"] = 1
    if spec.get("parallelism") is None:
        spec["parallelism"] = 1
    if spec.get("backoffLimit") is None:
        spec["backoffLimit"] = 6 if spec.get("backoffLimitPerIndex") is None else 2**31 - 1
    for name, value in (("completionMode", "NonIndexed"), ("suspend", False), ("manualSelector", False)):
        if spec.get(name) is None:
            spec[name] = value
    if spec.get("podReplacementPolicy") is None:
        spec["podReplacementPolicy"] = "Failed" if spec.get("podFailurePolicy") else "TerminatingOrFailed"
    template = dig(spec, "template", "spec")
    if isinstance(template, dict):
        pods.default_spec(template)
    _default_labels(job)


def _default_labels(job: Obj) -> None:
    """A Job without labels carries those of its pods."""
    meta = job.get("metadata") or {}
    labels = dig(job, "spec", "template", "metadata", "labels")
    if labels and not meta.get("labels"):
        meta["labels"] = dict(labels)


def prepare(job: Obj, _now: str) -> None:
    """The unique selector: every Job finds its own pods by its uid."""
    job["status"] = {}
    spec, uid, name = job["spec"], job["metadata"]["uid"], job["metadata"]["name"]
    if spec.get("manualSelector"):
        return
    labels = spec["template"].setdefault("metadata", {}).get("labels") or {}
    spec["template"]["metadata"]["labels"] = {
        **labels,
        "controller-uid": uid,
        "job-name": name,
        "batch.kubernetes.io/controller-uid": uid,
        "batch.kubernetes.io/job-name": name,
    }
    spec["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": uid}}
    _default_labels(job)


def check(new: Obj, old: Obj | None) -> list[Obj]:
    spec = new.get("spec") or {}
    if old is None:
        return _new_problems(spec)
    was = old["spec"]
    found = [_immutable(f"spec.{name}", spec.get(name)) for name in _IMMUTABLE if spec.get(name) != was.get(name)]
    if spec.get("completions") != was.get("completions") and not _elastic(spec, was):
        found.append(_immutable("spec.completions", spec.get("completions")))
    if _fixed(spec.get("template"), old) != _fixed(was["template"], old):
        found.append(_immutable("spec.template", "..."))
    return found


def _immutable(path: str, value: Any) -> Obj:
    return cause(path, f"Invalid value: {value!r}: field is immutable")


def _elastic(spec: Obj, was: Obj) -> bool:
    """An Indexed Job may grow and shrink while completions equal parallelism."""
    return (
        was.get("completionMode") == "Indexed"
        and spec.get("completions") == spec.get("parallelism")
        and was.get("completions") == was.get("parallelism")
    )


def _fixed(template: Any, old: Obj) -> Any:
    """The part of a template that may not change now: of a Job that is at rest all but scheduling."""
    if not _at_rest(old):
        return template
    kept = copy(template or {})
    for name in ("labels", "annotations"):
        (kept.get("metadata") or {}).pop(name, None)
    for name in _SCHEDULING:
        (kept.get("spec") or {}).pop(name, None)
    if not kept.get("metadata"):
        kept.pop("metadata", None)
    return kept


def _at_rest(job: Obj) -> bool:
    """Suspended, and either never started or known to have no pods (as of Kubernetes 1.35)."""
    status = job.get("status") or {}
    if not job["spec"].get("suspend") or status.get("active"):
        return False
    conditions = status.get("conditions") or ()
    return not status.get("startTime") or any(
        item.get("type") == "Suspended" and item.get("status") == "True" for item in conditions
    )


def _new_problems(spec: Obj) -> list[Obj]:
    found = []
    for name in ("parallelism", "completions", "backoffLimit"):
        value = spec.get(name)
        if isinstance(value, int) and value < 0:
            found.append(cause(f"spec.{name}", f"Invalid value: {value}: must be greater than or equal to 0"))
    if spec.get("completionMode") == "Indexed" and spec.get("completions") is None:
        why = "Required value: when completion mode is Indexed"
        found.append(cause("spec.completions", why, "FieldValueRequired"))
    template = dig(spec, "template", "spec")
    found += pods.spec_problems(template, "spec.template.spec")
    policy = dig(template, "restartPolicy")
    if policy not in ("OnFailure", "Never"):
        why = 'Required value: valid values: "OnFailure", "Never"'
        found.append(cause("spec.template.spec.restartPolicy", why, "FieldValueRequired"))
    return found
