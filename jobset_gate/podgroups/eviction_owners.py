"""Jobs and JobSets as JSON, read for a roll-back: who would have to be suspended, and what speaks against it (G4)."""

from collections.abc import Mapping
from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects.jobset import replicated_jobs
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.podgroups.eviction import JOB, JOBSET, SuspendTarget

_OVER: Final[Mapping[str, frozenset[str]]] = {
    # A Job deletes its pods as soon as it knows how it ends, and says that it has ended when they are gone.
    JOB: frozenset({"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"}),
    JOBSET: frozenset({"Completed", "Failed"}),
}
_USUAL: Final = frozenset({"", names.JOB_CONTROLLER, names.JOBSET_CONTROLLER})


def read_target(kind: str, obj: Json, others: tuple[str, ...] = ()) -> SuspendTarget:
    """A Job or JobSet as a whole. `others`: names of its living pods that are not in the group."""
    meta, spec = as_map(obj.get("metadata")), as_map(obj.get("spec"))
    manager = _text(spec.get("managedBy"))
    return SuspendTarget(
        kind=kind,
        namespace=_text(meta.get("namespace")),
        name=_text(meta.get("name")),
        uid=_text(meta.get("uid")),
        resource_version=_text(meta.get("resourceVersion")),
        suspended=spec.get("suspend") is True,
        mark=_text(nested(meta, "annotations", names.POD_GROUP_SUSPENDED)),
        finished="deletionTimestamp" in meta or _over(kind, obj),
        by_kueue=names.KUEUE_QUEUE in as_map(meta.get("labels")),
        managed_by="" if manager in _USUAL else manager,
        can_fail=can_fail_job(kind, obj),
        barrier=kind == JOBSET and any(it.labels[1].get(names.GATED) for it in replicated_jobs(obj)),
        others=others,
    )


def jobset_of(job: Json) -> tuple[str, str] | None:
    """Name and UID of the JobSet that controls a Job."""
    for owner in as_list(nested(job, "metadata", "ownerReferences")):
        ours = as_map(owner)
        if ours.get("controller") is True and ours.get("kind") == JOBSET:
            return _text(ours.get("name")), _text(ours.get("uid"))
    return None


def detach_labels(job: Json) -> tuple[str, ...]:
    """The labels to take from a pod so that its Job no longer knows it; () if none would do."""
    usual = (names.JOB_CONTROLLER_UID, names.JOB_CONTROLLER_UID_OF_OLD)
    asked = as_map(nested(job, "spec", "selector", "matchLabels"))
    if any(it in asked for it in usual):
        return usual
    return tuple(sorted(it for it in asked if it != names.POD_GROUP_LABEL))[:1]  # a selector of the user's own


def selector(job: Json) -> str:
    """A label selector that finds all pods of a Job, and maybe others."""
    asked = as_map(nested(job, "spec", "selector", "matchLabels"))
    return ",".join(f"{key}={_text(value)}" for key, value in sorted(asked.items()))


def can_fail_job(kind: str, obj: Json) -> bool:
    """Whether one pod's end can end the whole Job.

    Any rule that can is enough. Which exit code a program has when it is told to end is its own affair, and a
    condition that an earlier rule would ignore may come to a pod too late.
    """
    specs = (
        [nested(it.body, "template", "spec") for it in replicated_jobs(obj)] if kind == JOBSET else [obj.get("spec")]
    )
    return any(
        as_map(rule).get("action") == names.FAIL_JOB
        for spec in specs
        for rule in as_list(nested(spec, "podFailurePolicy", "rules"))
    )


def _over(kind: str, obj: Json) -> bool:
    conditions = as_list(nested(obj, "status", "conditions"))
    return any(it.get("type") in _OVER[kind] and it.get("status") == "True" for it in map(as_map, conditions))


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
