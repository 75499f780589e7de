"""Owners of a group's pods, read from JSON: can they ever create enough pods (G3), and how they are suspended (G4)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.objects.jobset import IN_ORDER, ReplicatedJobView, replicated_jobs
from jobset_gate.objects.unstructured import (
    Json,
    as_int,
    as_list,
    as_map,
    nested,
)
from jobset_gate.podgroups import formats
from jobset_gate.podgroups.eviction import JOB, JOBSET, SuspendTarget
from jobset_gate.podgroups.model import MergedGroup, PodGroupKey, RawMetadata


class OwnerCapacity(Value, frozen=True):
    """How many pods of a group a controller keeps at once."""

    kind: str
    name: str
    at_once: int | None
    """A Job's parallelism, a StatefulSet's replicas. None: not known, or no limit."""
    one_by_one: bool = False
    """Each pod has to be ready before the next, as for a StatefulSet with OrderedReady."""
    waits_for: str = ""
    """What has to be ready before its first pod, if that is in the group itself (dependsOn)."""

    @property
    def max_pods(self) -> int | None:
        """How many pods it has while none of them is bound."""
        if self.waits_for:
            return 0
        if self.one_by_one:
            return 1 if self.at_once is None else min(1, self.at_once)
        return self.at_once

    @property
    def description(self) -> str:
        """For messages."""
        title = f"{self.kind} {self.name}"
        if self.waits_for:
            return f"{title} waits for {self.waits_for}"
        return f"{title} makes its pods one after the other" if self.one_by_one else f"{title} makes {self.at_once}"


def capacity_shortage(group: MergedGroup, creators: Sequence[OwnerCapacity]) -> str | None:
    """Why the group never gathers; None if it may, or if that is not known."""
    numbers = [it.max_pods for it in creators]
    known = [it for it in numbers if it is not None]
    if not creators or len(known) < len(numbers) or group.minimum is None or group.gathered:
        return None
    if sum(known) >= group.minimum:
        return None
    listed = "; ".join(it.description for it in creators)
    return f"needs {group.minimum} pods at once, {sum(known)} can be there: {listed}"


def read_owner(kind: str, obj: Json, key: PodGroupKey) -> tuple[OwnerCapacity, ...]:
    """The capacity of an owner for the group."""
    reader = _READERS.get(kind)
    return (unknown_owner(kind, _name(obj)),) if reader is None else reader(obj, key)


def unknown_owner(kind: str, name: str) -> OwnerCapacity:
    """An owner of unknown capacity."""
    return OwnerCapacity(kind=kind, name=name, at_once=None)


def _of_job(obj: Json, _: PodGroupKey) -> tuple[OwnerCapacity, ...]:
    return (OwnerCapacity(kind=JOB, name=_name(obj), at_once=_at_once(as_map(obj.get("spec")))),)


def _of_stateful_set(obj: Json, _: PodGroupKey) -> tuple[OwnerCapacity, ...]:
    spec = as_map(obj.get("spec"))
    ordered = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    replicas = as_int(spec.get("replicas"), 1)
    return (OwnerCapacity(kind="StatefulSet", name=_name(obj), at_once=replicas, one_by_one=ordered),)


def _of_replicas(kind: str) -> "_Reader":
    return lambda obj, _: (
        OwnerCapacity(kind=kind, name=_name(obj), at_once=as_int(nested(obj, "spec", "replicas"), 1)),
    )


def _of_jobset(obj: Json, key: PodGroupKey) -> tuple[OwnerCapacity, ...]:
    """One for each of its replicatedJobs in the group, created or not."""
    jobs = list(replicated_jobs(obj))
    ours = [it for it in jobs if _is_in_group(it, key)]
    in_order = nested(obj, "spec", "startupPolicy", "startupPolicyOrder") == IN_ORDER
    found = []
    for it in ours:
        first = ours[0].name if in_order and it is not ours[0] else ""
        needed = (name for name in _dependencies(it, jobs) if any(name == one.name for one in ours))
        found.append(
            OwnerCapacity(
                kind=JOBSET,
                name=f"{_name(obj)} ({it.name})",
                at_once=as_int(it.body.get("replicas"), 1) * _at_once(it.job_spec),
                waits_for=first or next(needed, ""),
            )
        )
    return tuple(found)


def _is_in_group(job: ReplicatedJobView, key: PodGroupKey) -> bool:
    member = formats.parse_membership(RawMetadata.of_object(job.pod_template, key.namespace, ""))
    return member is not None and member.key == key


def _dependencies(job: ReplicatedJobView, jobs: Sequence[ReplicatedJobView]) -> Iterator[str]:
    """The names of all replicatedJobs that it depends on, directly or not."""
    bodies = {it.name: it.body for it in jobs}
    ahead, met = [job.name], {job.name}
    while ahead:
        for needed in as_list(as_map(bodies.get(ahead.pop())).get("dependsOn")):
            name = nested(needed, "name")
            if isinstance(name, str) and name not in met:
                met.add(name)
                ahead.append(name)
                yield name


def _at_once(spec: Json) -> int:
    """A Job never has more pods than completions are left."""
    parallelism = as_int(spec.get("parallelism"), 1)
    return min(parallelism, as_int(spec.get("completions"), parallelism))


def _name(obj: Json) -> str:
    return str(nested(obj, "metadata", "name") or "")


_Reader = Callable[[Json, PodGroupKey], tuple[OwnerCapacity, ...]]
_READERS: Final[Mapping[str, _Reader]] = MappingProxyType(
    {
        JOB: _of_job,
        JOBSET: _of_jobset,
        "StatefulSet": _of_stateful_set,
        "ReplicaSet": _of_replicas("ReplicaSet"),
        "ReplicationController": _of_replicas("ReplicationController"),
    }
)


# --- Suspension ------------------------------------------------------------------------------------------------------

_FINAL_CONDITIONS: Final[Mapping[str, frozenset[str]]] = {
    # A Job deletes its pods once its result is certain, and has its final condition when they are gone.
    JOB: frozenset({"Complete", "Failed", "SuccessCriteriaMet", "FailureTarget"}),
    JOBSET: frozenset({"Completed", "Failed"}),
}
_OWN_CONTROLLERS: Final = frozenset({"", names.JOB_CONTROLLER, names.JOBSET_CONTROLLER})


def read_target(kind: str, obj: Json, others: tuple[str, ...] = ()) -> SuspendTarget:
    """A Job or JobSet. `others`: names of its living pods that are not in the group."""
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
        finished="deletionTimestamp" in meta or _is_finished(kind, obj),
        by_kueue=names.KUEUE_QUEUE in as_map(meta.get("labels")),
        managed_by="" if manager in _OWN_CONTROLLERS else manager,
        can_fail=can_fail_job(kind, obj),
        barrier=kind == JOBSET and any(it.labels[1].get(names.GATED) for it in replicated_jobs(obj)),
        others=others,
    )


def jobset_of(job: Json) -> tuple[str, str] | None:
    """Name and UID of the JobSet that controls a Job."""
    for owner in map(as_map, as_list(nested(job, "metadata", "ownerReferences"))):
        if owner.get("controller") is True and owner.get("kind") == JOBSET:
            return _text(owner.get("name")), _text(owner.get("uid"))
    return None


def detach_labels(job: Json) -> tuple[str, ...]:
    """The labels to remove from a pod so that its Job does not find it; () if it finds pods by no label."""
    usual = (names.JOB_CONTROLLER_UID, names.JOB_CONTROLLER_UID_OF_OLD)
    selected = as_map(nested(job, "spec", "selector", "matchLabels"))
    if any(it in selected for it in usual):
        return usual
    return tuple(sorted(it for it in selected if it != names.POD_GROUP_LABEL))[:1]  # the user's own selector


def selector(job: Json) -> str:
    """A label selector of all pods of a Job, and maybe others."""
    selected = as_map(nested(job, "spec", "selector", "matchLabels"))
    return ",".join(f"{key}={_text(value)}" for key, value in sorted(selected.items()))


def can_fail_job(kind: str, obj: Json) -> bool:
    """Whether the end of one pod may fail the whole Job.

    Any FailJob rule counts: the exit code of a terminated program is not known, and a condition that an earlier rule
    ignores may be set too late.
    """
    templates = [it.body.get("template") for it in replicated_jobs(obj)] if kind == JOBSET else [obj]
    return any(
        as_map(rule).get("action") == names.FAIL_JOB
        for it in templates
        for rule in as_list(nested(it, "spec", "podFailurePolicy", "rules"))
    )


def _is_finished(kind: str, obj: Json) -> bool:
    conditions = map(as_map, as_list(nested(obj, "status", "conditions")))
    return any(it.get("type") in _FINAL_CONDITIONS[kind] and it.get("status") == "True" for it in conditions)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
