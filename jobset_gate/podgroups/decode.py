"""Pods and nodes, decoded to the shapes of `wire.py`, turned into the words of `seen.py`.

A pod event costs little: what a pod's template and its keys say is worked out once for all pods that say the same.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from math import floor
from typing import Any, Final

from jobset_gate import names
from jobset_gate.objects import quantity
from jobset_gate.objects.bounded_cache import BoundedCache, intern_text
from jobset_gate.podgroups import fields, formats, wire
from jobset_gate.podgroups.fit import anti_affinity, selection, template
from jobset_gate.podgroups.fit.anti_affinity import Labels
from jobset_gate.podgroups.fit.requests import Amounts
from jobset_gate.podgroups.model import Format, Membership, RawMetadata
from jobset_gate.podgroups.snapshot import BoundPod, ControllerRef, MemberPod, NodeAllocatable

_CLAIMS_BYTES: Final = 4 * 1024 * 1024
"""For what pods say of their groups. Some 3,000 groups."""

_ENTRY_BYTES: Final = 1024
"""What an entry costs besides what is in it."""

_LONGEST: Final = 300
"""Characters that are kept of a message, and of a name that nobody has checked."""

_MOST_GATES: Final = 16

_PHASES: Final = {it: it for it in ("Pending", "Running", "Succeeded", "Failed", "Unknown")}

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
_OF_NODES: Final = ("DaemonSet", "Node")
"""Kinds of owners whose pods run on each node, or on that one."""
_NONE: Final[Mapping[str, str]] = {}

Said = tuple[tuple[str, str], ...]

_MOST_LABELS: Final = 4096
"""Characters of a pod's labels."""

_marks: Final = BoundedCache[Labels, Labels](_CLAIMS_BYTES)
_claims: Final = BoundedCache[tuple[object, ...], Membership | None](_CLAIMS_BYTES)


# --- Pods ------------------------------------------------------------------------------------------------------------


def member(seen: wire.GroupPod, ways: frozenset[Format] = formats.ALL_FORMATS) -> MemberPod:
    """A pod of a group, be it by its label or by what it says. `ways`: those that are switched on."""
    meta, spec, status = seen.metadata, seen.spec, seen.status
    labels, notes = meta.labels or _NONE, meta.annotations or _NONE
    shape, left_out, repels = template.placement_facts(spec)
    gates = tuple(it.name for it in spec.scheduling_gates or ())
    generation, opened_at = opened(notes.get(names.POD_GROUP_OPENED, ""))
    return MemberPod(
        uid=meta.uid,
        namespace=intern_text(meta.namespace),
        name=meta.name,
        group_label=intern_text(labels.get(names.POD_GROUP_LABEL, "")),
        membership=_claimed(meta, ways),
        shape=shape,
        unsupported=left_out,
        anti_affinity=repels,
        labels=_kept(labels),
        created=seconds(meta.creation_timestamp),
        priority=spec.priority or 0,
        preempts=spec.preemption_policy != "Never",
        controller=_maker(meta.owner_references),
        jobset=intern_text(labels.get(names.JS_NAME, "")),
        barrier=labels.get(names.GATED) == names.GATED_VALUE,
        gated=names.POD_GROUP_GATE in gates,
        foreign_gates=tuple(it for it in gates if it != names.POD_GROUP_GATE)[:_MOST_GATES],
        generation=generation,
        ungated_at=opened_at,
        node=intern_text(spec.node_name),
        nominated=status.nominated_node_name != "",
        phase=_PHASES.get(status.phase, ""),
        deleting=meta.deletion_timestamp is not None,
        eviction_mark=notes.get(names.POD_GROUP_TAKEN_BACK, "")[:_LONGEST],
        native="" if spec.scheduling_group is None else spec.scheduling_group.pod_group_name,
        timed_out=notes.get(names.KOORDINATOR_TIMED_OUT) == "true",
        unschedulable=_unschedulable(status),
    )


def bound(
    seen: wire.GroupPod,
    ways: frozenset[Format] = formats.ALL_FORMATS,
    schedulers: Collection[str] = (names.DEFAULT_SCHEDULER,),
    namespace: str | None = None,
) -> BoundPod | None:
    """A pod that has a node. It is a member, too, if it should have been taken for a group and was not (Ungated).

    What counts are the requests of its spec: a resize in place is seen once the API server has it in the spec, and
    what the node has not given back yet is not reckoned with.
    """
    if not seen.spec.node_name:
        return None
    meta = seen.metadata
    ours = namespace in (None, meta.namespace) and _should_be_held(seen, schedulers)
    shape, _, repels = template.placement_facts(seen.spec)
    return BoundPod(
        uid=meta.uid,
        namespace=intern_text(meta.namespace),
        name=meta.name,
        node=intern_text(seen.spec.node_name),
        requests=shape.requests,
        priority=seen.spec.priority or 0,
        stays_on_node=_stays(meta),
        anti_affinity=repels,
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


def node(seen: wire.Node) -> NodeAllocatable:
    """A node; the same as before for every word of its kubelet that changes nothing for pods."""
    body = {
        "metadata": {"name": seen.metadata.name, "labels": seen.metadata.labels},
        "spec": {"taints": seen.spec.taints, "unschedulable": seen.spec.unschedulable},
    }
    return NodeAllocatable(node=selection.node_facts(body), allocatable=_allocatable(seen.status.allocatable))


# --- Details ---------------------------------------------------------------------------------------------------------


def _claimed(meta: wire.GroupPodMeta, ways: frozenset[Format]) -> Membership | None:
    said, noted = _picked(meta.labels, _LABELS), _picked(meta.annotations, _NOTES)
    if not said and not noted:
        return None
    noted += tuple((key, "") for key in formats.ignored_annotations(meta.annotations or (), _NOTES))
    held = (meta.labels or _NONE).get(names.POD_GROUP_LABEL, "")
    key = meta.namespace, said, noted, ways, held
    if key in _claims:
        return _claims[key]
    found = formats.parse_membership(
        RawMetadata(namespace=meta.namespace, labels=dict(said), annotations=dict(noted)), ways, held=held
    )
    return _claims.put(key, found, _ENTRY_BYTES + 3 * sum(len(name) + len(value) for name, value in (*said, *noted)))


def _picked(said: Mapping[str, str] | None, keys: tuple[str, ...]) -> Said:
    """Cut where it is too long for what it should be."""
    return tuple((key, said[key][: fields.MAX_TEXT + 1]) for key in keys if key in said) if said else ()


def _maker(owners: tuple[wire.PodOwner, ...] | None) -> ControllerRef | None:
    return next((_made_by(it) for it in owners or () if it.controller), None)


def _made_by(owner: wire.PodOwner) -> ControllerRef:
    return ControllerRef(
        api_version=intern_text(owner.api_version[:_LONGEST]),
        kind=intern_text(owner.kind[:_LONGEST]),
        name=intern_text(owner.name[:_LONGEST]),
        uid=intern_text(owner.uid[:_LONGEST]),
    )


def _should_be_held(seen: wire.GroupPod, schedulers: Collection[str]) -> bool:
    """Whether a pod is one of those that the webhook takes (G2), and has not been taken."""
    meta, spec = seen.metadata, seen.spec
    maker = _maker(meta.owner_references)
    return (
        names.POD_GROUP_LABEL not in (meta.labels or _NONE)
        and spec.scheduler_name in schedulers
        and spec.scheduling_group is None
        and names.MIRROR_POD not in (meta.annotations or _NONE)
        and (maker is None or maker.kind != "DaemonSet")
    )


def _kept(labels: Mapping[str, str]) -> Labels | None:
    """The same object for pods that have the same."""
    found = anti_affinity.stable_labels(labels.items())
    known = _marks.get(found)
    if known is not None:
        return known
    weight = sum(len(key) + len(value) for key, value in found)
    return None if weight > _MOST_LABELS else _marks.put(found, found, _ENTRY_BYTES + 2 * weight)


def _stays(meta: wire.GroupPodMeta) -> bool:
    maker = _maker(meta.owner_references)
    return names.MIRROR_POD in (meta.annotations or _NONE) or (maker is not None and maker.kind in _OF_NODES)


def _unschedulable(status: wire.GroupPodStatus) -> str:
    """What the scheduler says, once it has tried."""
    for it in status.conditions or ():
        if it.type == "PodScheduled":
            waits = it.status != "True" and it.reason != "SchedulingGated"
            return intern_text(it.message[:_LONGEST]) if waits else ""
    return ""


def _allocatable(amounts: Mapping[str, Any] | None) -> Amounts:
    """In thousandths, rounded down."""
    read = ((name, quantity.amount(value)) for name, value in (amounts or {}).items())
    return {intern_text(name): floor(amount * 1000) for name, amount in read if amount is not None}


def seconds(moment: datetime | None) -> float:
    """Since the epoch; 0 for no moment."""
    return 0.0 if moment is None else moment.timestamp()
