"""Who makes a group's pods, and whether they can ever make enough while all of them are held (G3, CannotGather)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from jobset_gate.barrier.model import Value
from jobset_gate.objects.jobset import IN_ORDER, ReplicatedJobView, replicated_jobs
from jobset_gate.objects.unstructured import Json, as_int, as_list, as_map, nested
from jobset_gate.podgroups import formats
from jobset_gate.podgroups.model import MergedGroup, PodGroupKey, RawMetadata


class OwnerCapacity(Value, frozen=True):
    """A controller that makes pods of a group."""

    kind: str
    name: str
    at_once: int | None
    """Pods it keeps side by side: a Job's parallelism, a StatefulSet's replicas. None: not known, or no limit."""
    one_by_one: bool = False
    """It waits for each pod to be ready before it makes the next, as a StatefulSet with OrderedReady does."""
    waits_for: str = ""
    """What must be done or ready before it makes any pod, if that is itself part of the group (dependsOn)."""

    @property
    def max_pods(self) -> int | None:
        """How many pods it has while none of them may be scheduled."""
        if self.waits_for:
            return 0
        if self.one_by_one:
            return 1 if self.at_once is None else min(1, self.at_once)
        return self.at_once

    @property
    def description(self) -> str:
        """What it does, for people."""
        title = f"{self.kind} {self.name}"
        if self.waits_for:
            return f"{title} waits for {self.waits_for}"
        return f"{title} makes its pods one after the other" if self.one_by_one else f"{title} makes {self.at_once}"


def capacity_shortage(group: MergedGroup, creators: Sequence[OwnerCapacity]) -> str | None:
    """Why the group can never gather; None if it can, or if that is not known."""
    numbers = [it.max_pods for it in creators]
    known = [it for it in numbers if it is not None]
    if not creators or len(known) < len(numbers) or group.minimum is None or group.gathered:
        return None
    if sum(known) >= group.minimum:
        return None
    told = "; ".join(it.description for it in creators)
    return f"needs {group.minimum} pods at once, {sum(known)} can be there: {told}"


def read_owner(kind: str, obj: Json, key: PodGroupKey) -> tuple[OwnerCapacity, ...]:
    """What an owner of that kind, as JSON, says of the pods that it makes for the group."""
    reader = _READERS.get(kind)
    return (unknown_owner(kind, _name(obj)),) if reader is None else reader(obj, key)


def unknown_owner(kind: str, name: str) -> OwnerCapacity:
    """One of which nobody knows how many pods it makes."""
    return OwnerCapacity(kind=kind, name=name, at_once=None)


# --- Kinds -----------------------------------------------------------------------------------------------------------


def _of_job(obj: Json, _: PodGroupKey) -> tuple[OwnerCapacity, ...]:
    return (OwnerCapacity(kind="Job", name=_name(obj), at_once=_at_once(as_map(obj.get("spec")))),)


def _of_stateful_set(obj: Json, _: PodGroupKey) -> tuple[OwnerCapacity, ...]:
    spec = as_map(obj.get("spec"))
    ordered = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    replicas = as_int(spec.get("replicas"), 1)
    return (OwnerCapacity(kind="StatefulSet", name=_name(obj), at_once=replicas, one_by_one=ordered),)


def _of_replicas(kind: str) -> "Reader":
    def reader(obj: Json, _: PodGroupKey) -> tuple[OwnerCapacity, ...]:
        return (OwnerCapacity(kind=kind, name=_name(obj), at_once=as_int(nested(obj, "spec", "replicas"), 1)),)

    return reader


def _of_jobset(obj: Json, key: PodGroupKey) -> tuple[OwnerCapacity, ...]:
    """One for each of its replicated Jobs that is in the group, be it that its Jobs are not made yet."""
    all_ = list(replicated_jobs(obj))
    mine = [it for it in all_ if _names(it, key)]
    in_order = nested(obj, "spec", "startupPolicy", "startupPolicyOrder") == IN_ORDER
    found = []
    for it in mine:
        first = mine[0].name if in_order and it is not mine[0] else ""
        held = first or next((name for name in _needs(it, all_) if any(name == one.name for one in mine)), "")
        found.append(
            OwnerCapacity(
                kind="JobSet",
                name=f"{_name(obj)} ({it.name})",
                at_once=as_int(it.body.get("replicas"), 1) * _at_once(it.job_spec),
                waits_for=held,
            )
        )
    return tuple(found)


def _names(job: ReplicatedJobView, key: PodGroupKey) -> bool:
    """Whether its pods are of the group."""
    claim = formats.parse_membership(RawMetadata.of_object(job.pod_template, key.namespace, ""))
    return claim is not None and claim.key == key


def _needs(job: ReplicatedJobView, all_: Sequence[ReplicatedJobView]) -> Iterator[str]:
    """The names of all that it depends on, directly or not."""
    bodies = {it.name: it.body for it in all_}
    ahead, met = [job.name], {job.name}
    while ahead:
        for needed in as_list(as_map(bodies.get(ahead.pop())).get("dependsOn")):
            name = nested(needed, "name")
            if isinstance(name, str) and name not in met:
                met.add(name)
                ahead.append(name)
                yield name


def _at_once(spec: Json) -> int:
    """A Job never has more pods than are still to succeed."""
    parallelism = as_int(spec.get("parallelism"), 1)
    completions: Any = spec.get("completions")
    return min(parallelism, as_int(completions, parallelism))


def _name(obj: Json) -> str:
    return str(nested(obj, "metadata", "name") or "")


Reader = Callable[[Json, PodGroupKey], tuple[OwnerCapacity, ...]]
_READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "Job": _of_job,
        "JobSet": _of_jobset,
        "StatefulSet": _of_stateful_set,
        "ReplicaSet": _of_replicas("ReplicaSet"),
        "ReplicationController": _of_replicas("ReplicationController"),
    }
)
