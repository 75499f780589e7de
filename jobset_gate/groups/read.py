"""Pods and nodes, decoded to the shapes of `wire.py`, turned into the words of `seen.py`.

A pod event costs little: what a pod's template and its keys say is worked out once for all pods that say the same.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from functools import lru_cache
from math import floor
from sys import intern
from typing import Any, Final

import msgspec

from jobset_gate import names, quantity
from jobset_gate.groups import pods, requests, selection, unmodelled, wire
from jobset_gate.groups.certainty import Shape
from jobset_gate.groups.model import Claim, Meta, Way
from jobset_gate.groups.requests import Amounts
from jobset_gate.groups.seen import BoundSeen, Maker, MemberSeen, NodeSeen

_KINDS: Final = 8192
"""Kinds of pods whose facts are remembered; the pods of a Job or of a gang are one kind."""

_LABELS: Final = (names.PLUGINS_NAME, names.ALIBABA_NAME, names.ALIBABA_MINIMUM, names.KOORDINATOR_LABEL)
_NOTES: Final = (
    names.KEP24_NAME,
    names.KOORDINATOR_NAME,
    names.KOORDINATOR_MINIMUM,
    names.KOORDINATOR_WAIT,
    names.KOORDINATOR_TOTAL,
    names.KOORDINATOR_MODE,
    names.KOORDINATOR_GANGS,
)
_NONE: Final[Mapping[str, str]] = {}

Said = tuple[tuple[str, str], ...]


# --- Pods ------------------------------------------------------------------------------------------------------------


def member(seen: wire.Pod, ways: frozenset[Way] = pods.ALL) -> MemberSeen:
    """A pod of a group, be it by its label or by what it says. `ways`: those that are switched on."""
    meta, spec, status = seen.metadata, seen.spec, seen.status
    labels, notes = meta.labels or _NONE, meta.annotations or _NONE
    shape, left_out = _kind(_template(spec))
    gates = tuple(it.name for it in spec.scheduling_gates or ())
    generation, opened_at = opened(notes.get(names.GANG_OPENED, ""))
    return MemberSeen(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        held=intern(labels.get(names.GANG, "")),
        claim=_claimed(meta, ways),
        shape=shape,
        unmodelled=left_out,
        created=seconds(meta.creation_timestamp),
        priority=spec.priority or 0,
        preempts=spec.preemption_policy != "Never",
        maker=_maker(meta.owner_references),
        jobset=intern(labels.get(names.JS_NAME, "")),
        barrier=labels.get(names.GATED) == names.GATED_VALUE,
        gated=names.GANG_GATE in gates,
        other_gates=tuple(it for it in gates if it != names.GANG_GATE),
        generation=generation,
        opened_at=opened_at,
        node=intern(spec.node_name),
        phase=intern(status.phase),
        deleting=meta.deletion_timestamp is not None,
        taken_back=notes.get(names.GANG_TAKEN_BACK, ""),
        native="" if spec.scheduling_group is None else spec.scheduling_group.pod_group_name,
        timed_out=notes.get(names.KOORDINATOR_TIMED_OUT) == "true",
        unschedulable=_unschedulable(status),
    )


def bound(
    seen: wire.Pod,
    ways: frozenset[Way] = pods.ALL,
    schedulers: Collection[str] = (names.DEFAULT_SCHEDULER,),
    namespace: str | None = None,
) -> BoundSeen | None:
    """A pod that has a node. It is a member, too, if it should have been taken for a group and was not (Ungated).

    What counts are the requests of its spec: a resize in place is seen once the API server has it in the spec, and
    what the node has not given back yet is not reckoned with.
    """
    if not seen.spec.node_name:
        return None
    meta = seen.metadata
    ours = namespace in (None, meta.namespace) and _should_be_held(seen, schedulers)
    shape, _ = _kind(_template(seen.spec))
    return BoundSeen(
        uid=meta.uid,
        namespace=intern(meta.namespace),
        name=meta.name,
        node=intern(seen.spec.node_name),
        requests=shape.requests,
        priority=seen.spec.priority or 0,
        ungated=member(seen, ways) if ours and _claimed(meta, ways) is not None else None,
    )


def opened(text: str) -> tuple[int, float]:
    """Generation and time of opening, as the annotation has them; zeros where it says nothing that we wrote."""
    number, _, moment = text.partition(" ")
    if not (number.isascii() and number.isdecimal()) or len(number) > 18:
        return 0, 0.0
    try:
        return int(number), datetime.fromisoformat(moment).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return 0, 0.0


def opened_text(generation: int, moment: float) -> str:
    """The annotation for it."""
    stamp = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return f"{generation} {stamp.replace('+00:00', 'Z')}"


# --- Nodes -----------------------------------------------------------------------------------------------------------


def node(seen: wire.Node) -> NodeSeen:
    """A node; the same as before for every word of its kubelet that changes nothing for pods."""
    body = {
        "metadata": {"name": seen.metadata.name, "labels": seen.metadata.labels},
        "spec": {"taints": seen.spec.taints, "unschedulable": seen.spec.unschedulable},
    }
    return NodeSeen(node=selection.of_node(body), allocatable=_allocatable(seen.status.allocatable))


# --- Details ---------------------------------------------------------------------------------------------------------


def _template(spec: wire.PodSpec) -> bytes:
    """What decides about the pod's place, as JSON: the same bytes for pods of one template."""
    return msgspec.json.encode(
        wire.Template(
            containers=spec.containers,
            init_containers=spec.init_containers,
            volumes=spec.volumes,
            resources=spec.resources,
            overhead=spec.overhead,
            node_selector=spec.node_selector,
            affinity=spec.affinity,
            tolerations=spec.tolerations,
            topology_spread_constraints=spec.topology_spread_constraints,
            resource_claims=spec.resource_claims,
        )
    )


@lru_cache(maxsize=_KINDS)
def _kind(template: bytes) -> tuple[Shape, tuple[str, ...]]:
    spec = msgspec.json.decode(template)
    shape = Shape(selection=selection.of_pod(spec), requests=requests.of_pod(spec), count=1)
    return shape, unmodelled.of_pod(spec)


def _claimed(meta: wire.PodMeta, ways: frozenset[Way]) -> Claim | None:
    said, noted = _picked(meta.labels, _LABELS), _picked(meta.annotations, _NOTES)
    held = (meta.labels or _NONE).get(names.GANG, "")
    return _claim(meta.namespace, said, noted, ways, held) if said or noted else None


def _picked(values: Mapping[str, str] | None, keys: tuple[str, ...]) -> Said:
    return tuple((key, values[key]) for key in keys if key in values) if values else ()


@lru_cache(maxsize=_KINDS)
def _claim(namespace: str, labels: Said, notes: Said, ways: frozenset[Way], held: str) -> Claim | None:
    meta = Meta(namespace=namespace, labels=dict(labels), annotations=dict(notes))
    return pods.claim(meta, ways, held=held)


@lru_cache(maxsize=_KINDS)
def _made_by(owner: wire.OwnerReference) -> Maker:
    return Maker(api_version=owner.api_version, kind=owner.kind, name=owner.name, uid=owner.uid)


def _maker(owners: tuple[wire.OwnerReference, ...] | None) -> Maker | None:
    return next((_made_by(it) for it in owners or () if it.controller), None)


def _should_be_held(seen: wire.Pod, schedulers: Collection[str]) -> bool:
    """Whether a pod is one of those that the webhook takes (G2), and has not been taken."""
    meta, spec = seen.metadata, seen.spec
    maker = _maker(meta.owner_references)
    return (
        names.GANG not in (meta.labels or _NONE)
        and spec.scheduler_name in schedulers
        and spec.scheduling_group is None
        and names.MIRROR_POD not in (meta.annotations or _NONE)
        and (maker is None or maker.kind != "DaemonSet")
    )


def _unschedulable(status: wire.PodStatus) -> str:
    """What the scheduler says, once it has tried."""
    for it in status.conditions or ():
        if it.type == "PodScheduled":
            return "" if it.status == "True" or it.reason == "SchedulingGated" else it.message
    return ""


def _allocatable(amounts: Mapping[str, Any] | None) -> Amounts:
    """In thousandths, rounded down."""
    read = ((name, quantity.amount(value)) for name, value in (amounts or {}).items())
    return {intern(name): floor(amount * 1000) for name, amount in read if amount is not None}


def seconds(moment: datetime | None) -> float:
    """Since the epoch; 0 for no moment."""
    return 0.0 if moment is None else moment.timestamp()
