"""Who makes a group's pods, and whether they can ever make enough while all of them are held (G3, CannotGather)."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from jobset_gate.groups import pods
from jobset_gate.groups.model import Group, Key, Meta
from jobset_gate.model import Word
from jobset_gate.order_rules import IN_ORDER
from jobset_gate.template import Json, Replicated, dig, items, mapping, replicated_jobs, whole


class Creator(Word, frozen=True):
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
    def most(self) -> int | None:
        """How many pods it has while none of them may be scheduled."""
        if self.waits_for:
            return 0
        if self.one_by_one:
            return 1 if self.at_once is None else min(1, self.at_once)
        return self.at_once

    @property
    def told(self) -> str:
        """What it does, for people."""
        title = f"{self.kind} {self.name}"
        if self.waits_for:
            return f"{title} waits for {self.waits_for}"
        return f"{title} makes its pods one after the other" if self.one_by_one else f"{title} makes {self.at_once}"


def short(group: Group, creators: Sequence[Creator]) -> str | None:
    """Why the group can never gather; None if it can, or if that is not known."""
    numbers = [it.most for it in creators]
    known = [it for it in numbers if it is not None]
    if not creators or len(known) < len(numbers) or group.minimum is None or group.gathered:
        return None
    if sum(known) >= group.minimum:
        return None
    told = "; ".join(it.told for it in creators)
    return f"needs {group.minimum} pods at once, {sum(known)} can be there: {told}"


def read(kind: str, obj: Json, key: Key) -> tuple[Creator, ...]:
    """What an owner of that kind, as JSON, says of the pods that it makes for the group."""
    reader = _READERS.get(kind)
    return (unknown(kind, _name(obj)),) if reader is None else reader(obj, key)


def unknown(kind: str, name: str) -> Creator:
    """One of which nobody knows how many pods it makes."""
    return Creator(kind=kind, name=name, at_once=None)


# --- Kinds -----------------------------------------------------------------------------------------------------------


def _of_job(obj: Json, _: Key) -> tuple[Creator, ...]:
    return (Creator(kind="Job", name=_name(obj), at_once=_at_once(mapping(obj.get("spec")))),)


def _of_stateful_set(obj: Json, _: Key) -> tuple[Creator, ...]:
    spec = mapping(obj.get("spec"))
    ordered = spec.get("podManagementPolicy", "OrderedReady") == "OrderedReady"
    replicas = whole(spec.get("replicas"), 1)
    return (Creator(kind="StatefulSet", name=_name(obj), at_once=replicas, one_by_one=ordered),)


def _of_replicas(kind: str) -> "Reader":
    def reader(obj: Json, _: Key) -> tuple[Creator, ...]:
        return (Creator(kind=kind, name=_name(obj), at_once=whole(dig(obj, "spec", "replicas"), 1)),)

    return reader


def _of_jobset(obj: Json, key: Key) -> tuple[Creator, ...]:
    """One for each of its replicated Jobs that is in the group, be it that its Jobs are not made yet."""
    all_ = list(replicated_jobs(obj))
    mine = [it for it in all_ if _names(it, key)]
    in_order = dig(obj, "spec", "startupPolicy", "startupPolicyOrder") == IN_ORDER
    found = []
    for it in mine:
        first = mine[0].name if in_order and it is not mine[0] else ""
        held = first or next((name for name in _needs(it, all_) if any(name == one.name for one in mine)), "")
        found.append(
            Creator(
                kind="JobSet",
                name=f"{_name(obj)} ({it.name})",
                at_once=whole(it.body.get("replicas"), 1) * _at_once(it.job_spec),
                waits_for=held,
            )
        )
    return tuple(found)


def _names(job: Replicated, key: Key) -> bool:
    """Whether its pods are of the group."""
    claim = pods.claim(Meta.of(job.pod_template, key.namespace, ""))
    return claim is not None and claim.key == key


def _needs(job: Replicated, all_: Sequence[Replicated]) -> Iterator[str]:
    """The names of all that it depends on, directly or not."""
    bodies = {it.name: it.body for it in all_}
    ahead, met = [job.name], {job.name}
    while ahead:
        for needed in items(mapping(bodies.get(ahead.pop())).get("dependsOn")):
            name = dig(needed, "name")
            if isinstance(name, str) and name not in met:
                met.add(name)
                ahead.append(name)
                yield name


def _at_once(spec: Json) -> int:
    """A Job never has more pods than are still to succeed."""
    parallelism = whole(spec.get("parallelism"), 1)
    completions: Any = spec.get("completions")
    return min(parallelism, whole(completions, parallelism))


def _name(obj: Json) -> str:
    return str(dig(obj, "metadata", "name") or "")


Reader = Callable[[Json, Key], tuple[Creator, ...]]
_READERS: Final[Mapping[str, Reader]] = MappingProxyType(
    {
        "Job": _of_job,
        "JobSet": _of_jobset,
        "StatefulSet": _of_stateful_set,
        "ReplicaSet": _of_replicas("ReplicaSet"),
        "ReplicationController": _of_replicas("ReplicationController"),
    }
)
