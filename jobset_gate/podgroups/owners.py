"""Owners of a group's pods, read from JSON: can they ever create enough pods (G3), and how they are suspended (G4)."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.objects.template import IN_ORDER, TemplateView, templates_of
from jobset_gate.objects.unstructured import Json, as_int, as_list, as_map, as_text, nested
from jobset_gate.podgroups import formats
from jobset_gate.podgroups.eviction import JOB, JOBSET, SuspendTarget
from jobset_gate.podgroups.model import MergedGroup, PodGroupKey, RawMetadata


class OwnerCapacity(Value, frozen=True):
    """How many pods of a group a controller keeps at once."""

    kind: str
    name: str
    max_pods: int | None
    """How many pods it has while none of them is bound. None: not known, or no limit."""
    why: str = ""
    """Why it has no more, if that is not a number of its spec."""

    @property
    def description(self) -> str:
        return f"{self.kind} {self.name} {self.why or f'makes {self.max_pods}'}"


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
    if kind == JOBSET:
        return tuple(_of_jobset(obj, key))
    spec, many, why = as_map(obj.get("spec")), None, ""
    if kind == JOB:
        many = _at_once(spec)
    elif kind in ("StatefulSet", "ReplicaSet", "ReplicationController"):
        many = as_int(spec.get("replicas"), 1)
    if kind == "StatefulSet" and spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady":
        many, why = min(1, many or 0), "makes its pods one after the other"
    return (OwnerCapacity(kind=kind, name=_name(obj), max_pods=many, why=why),)


def unknown_owner(kind: str, name: str) -> OwnerCapacity:
    return OwnerCapacity(kind=kind, name=name, max_pods=None)


def _of_jobset(obj: Json, key: PodGroupKey) -> Iterator[OwnerCapacity]:
    """One for each of its replicatedJobs in the group, created or not."""
    jobs = list(templates_of(obj))
    ours = [it for it in jobs if _is_in_group(it, key)]
    in_order = nested(obj, "spec", "startupPolicy", "startupPolicyOrder") == IN_ORDER
    for it in ours:
        ahead = [ours[0].name] if in_order and it is not ours[0] else _dependencies(it, jobs)
        first = next((name for name in ahead if any(name == one.name for one in ours)), "")
        many = 0 if first else as_int(it.entry.get("replicas"), 1) * _at_once(it.job_spec)
        why = f"waits for {first}" if first else ""
        yield OwnerCapacity(kind=JOBSET, name=f"{_name(obj)} ({it.name})", max_pods=many, why=why)


def _is_in_group(job: TemplateView, key: PodGroupKey) -> bool:
    member = formats.parse_membership(RawMetadata.of_object(job.pod_template, key.namespace, ""))
    return member is not None and member.key == key


def _dependencies(job: TemplateView, jobs: Sequence[TemplateView]) -> Iterator[str]:
    """The names of all replicatedJobs that it depends on, directly or not."""
    bodies = {it.name: it.entry for it in jobs}
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
    manager = as_text(spec.get("managedBy"))
    return SuspendTarget(
        kind=kind,
        namespace=as_text(meta.get("namespace")),
        name=as_text(meta.get("name")),
        uid=as_text(meta.get("uid")),
        resource_version=as_text(meta.get("resourceVersion")),
        suspended=spec.get("suspend") is True,
        mark=as_text(nested(meta, "annotations", names.POD_GROUP_SUSPENDED)),
        finished="deletionTimestamp" in meta or _is_finished(kind, obj),
        by_kueue=names.KUEUE_QUEUE in as_map(meta.get("labels")),
        managed_by="" if manager in _OWN_CONTROLLERS else manager,
        can_fail=can_fail_job(kind, obj),
        barrier=kind == JOBSET and any(it.labels[1].get(names.GATED) for it in templates_of(obj)),
        others=others,
    )


def jobset_of(job: Json) -> tuple[str, str] | None:
    """Name and UID of the JobSet that controls a Job."""
    for owner in map(as_map, as_list(nested(job, "metadata", "ownerReferences"))):
        if owner.get("controller") is True and owner.get("kind") == JOBSET:
            return as_text(owner.get("name")), as_text(owner.get("uid"))
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
    return ",".join(f"{key}={as_text(value)}" for key, value in sorted(selected.items()))


def can_fail_job(kind: str, obj: Json) -> bool:
    """Whether the end of one pod may fail the whole Job.

    Any FailJob rule counts: the exit code of a terminated program is not known, and a condition that an earlier rule
    ignores may be set too late.
    """
    templates = [it.job for it in templates_of(obj)] if kind == JOBSET else [obj]
    return any(
        as_map(rule).get("action") == names.FAIL_JOB
        for it in templates
        for rule in as_list(nested(it, "spec", "podFailurePolicy", "rules"))
    )


def _is_finished(kind: str, obj: Json) -> bool:
    conditions = map(as_map, as_list(nested(obj, "status", "conditions")))
    return any(it.get("type") in _FINAL_CONDITIONS[kind] and it.get("status") == "True" for it in conditions)
