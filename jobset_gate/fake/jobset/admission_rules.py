"""What JobSet refuses: names that get too long, dependencies that cannot be, and changes of what may not change."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

from jobset_gate.fake.objects import Json, holds

LONGEST_NAME = 63
_POD_SUFFIX = 6  # a dash and five random characters
_SCHEDULING = ("nodeSelector", "tolerations", "schedulingGates")
_EMPTY_IS_ABSENT = ("labels", "annotations", "nodeSelector", "metadata", "resources", "limits", "requests")


@dataclass(frozen=True, slots=True)
class Refusal:
    """One thing that is wrong: where, and what."""

    field: str
    message: str
    reason: str = "FieldValueInvalid"


def on_create(jobset: Json) -> list[Refusal]:
    """`metadata.name` may be empty when the name is to be generated."""
    meta, spec = jobset["metadata"], jobset["spec"]
    stem = meta.get("name") or meta.get("generateName", "") + "x" * 5
    found: list[Refusal] = []
    known: set[str] = set()
    for index, job in enumerate(spec.get("replicatedJobs") or ()):
        path = f"spec.replicatedJobs[{index}]"
        known.add(job["name"])
        found += _name_refusals(stem, job, path)
        found += [
            Refusal(f"{path}.dependsOn", f"Invalid value: {needed['name']!r}: is no earlier replicatedJob")
            for needed in job.get("dependsOn") or ()
            if needed["name"] not in known - {job["name"]}
        ]
    for target in (spec.get("successPolicy") or {}).get("targetReplicatedJobs") or ():
        if target not in known:
            found.append(Refusal("spec.successPolicy.targetReplicatedJobs", f"Invalid value: {target!r}: no such job"))
    return found


def on_update(new: Json, old: Json) -> list[Refusal]:
    """Everything in replicatedJobs stands, except what scheduling needs around a suspend, and elastic sizes."""
    fresh, stored = new["spec"], old["spec"]
    munged = copy.deepcopy(fresh.get("replicatedJobs") or [])
    before = {job["name"]: job for job in stored.get("replicatedJobs") or ()}
    over = any(holds((old.get("status") or {}).get("conditions"), kind) for kind in ("Completed", "Failed"))
    loose = bool(fresh.get("suspend")) or bool(stored.get("suspend"))
    found: list[Refusal] = []
    for index, job in enumerate(munged):
        was = before.get(job["name"])
        if was is None:
            continue
        found += _resize(job, was, f"spec.replicatedJobs[{index}].template.spec", over=over)
        if loose:
            _put_scheduling_back(job, was)
    if _typed(munged) != _typed(stored.get("replicatedJobs") or []):
        found.append(Refusal("spec.replicatedJobs", "Invalid value: field is immutable"))
    if fresh.get("managedBy") != stored.get("managedBy"):
        found.append(Refusal("spec.managedBy", f"Invalid value: {fresh.get('managedBy')!r}: field is immutable"))
    return found


def _name_refusals(stem: str, job: Json, path: str) -> list[Refusal]:
    spec = job["template"]["spec"]
    longest = f"{stem}-{job['name']}-{max(0, job.get('replicas', 1) - 1)}"
    pod = f"{longest}-{max(0, (spec.get('completions') or 1) - 1)}"
    lengths = {"job": len(longest), "pod": len(pod) + _POD_SUFFIX}
    return [
        Refusal(f"{path}.name", f"Invalid value: {longest!r}: {kind} names would exceed {LONGEST_NAME} characters")
        for kind, length in lengths.items()
        if length > LONGEST_NAME
    ]


def _resize(job: Json, was: Json, path: str, *, over: bool) -> list[Refusal]:
    """Check a change of an Indexed Job's size, then put the old size back so that it is no difference."""
    spec, old = job["template"]["spec"], was["template"]["spec"]
    if spec.get("completionMode") != "Indexed":
        return []
    sizes = {key: spec.get(key) for key in ("parallelism", "completions")}
    changed = [key for key, value in sizes.items() if value != old.get(key)]
    found = []
    if changed and over:
        found.append(Refusal(path, "Forbidden: the jobset has finished", "FieldValueForbidden"))
    elif changed:
        found += [
            Refusal(f"{path}.{key}", f"Invalid value: {sizes[key]}: must be at least 1")
            for key in changed
            if sizes[key] is not None and sizes[key] < 1
        ]
        if None not in sizes.values() and len(set(sizes.values())) > 1:
            message = f"Invalid value: {sizes['completions']}: must be equal to parallelism"
            found.append(Refusal(f"{path}.completions", message))
    for key in sizes:
        _put_back(spec, old, key)
    return found


def _put_scheduling_back(job: Json, was: Json) -> None:
    template, old = job["template"]["spec"]["template"], was["template"]["spec"]["template"]
    meta = template.setdefault("metadata", {})
    for key in ("labels", "annotations"):
        _put_back(meta, old.get("metadata") or {}, key)
    for key in _SCHEDULING:
        _put_back(template["spec"], old["spec"], key)


def _put_back(where: Json, old: Json, key: str) -> None:
    where.pop(key, None)
    if key in old:
        where[key] = old[key]


def _typed(value: Any) -> Any:
    """As Go's types would compare it: null, an empty list, an empty string and no value at all are the same."""
    if isinstance(value, dict):
        typed = {key: _typed(item) for key, item in value.items()}
        return {key: item for key, item in typed.items() if not _absent(key, item)}
    if isinstance(value, list):
        return [_typed(item) for item in value]
    return value


def _absent(key: str, value: Any) -> bool:
    return value is None or value in ([], "") or (value == {} and key in _EMPTY_IS_ABSENT)
