"""Decodes pods, nodes, PodGroups and ConfigMaps from their wire structs to parts of a group's snapshot.

A pod event is cheap: what a pod's template and its keys say is parsed once for all pods that say the same.
"""

from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from math import floor
from typing import Any, Final

import msgspec

from jobset_gate import names
from jobset_gate.barrier.wire import TypedOwnerReference
from jobset_gate.errors import Malformed
from jobset_gate.objects import quantity
from jobset_gate.objects.caches import BoundedCache, intern_text
from jobset_gate.objects.field_error import FieldError, annotation_path, child_path
from jobset_gate.objects.unstructured import Json, as_map
from jobset_gate.podgroups import fields, formats, record, wire
from jobset_gate.podgroups.fit import constraints, template
from jobset_gate.podgroups.fit.constraints import Amounts, Labels, NodeFacts
from jobset_gate.podgroups.model import Flavor, Format, Membership, PodGroupKey, RawMetadata, group_label
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import BoundPod, ControllerRef, MemberPod, NodeAllocatable, RecordObject, RecordRef

_CACHE_BYTES: Final = 4 * 1024 * 1024
"""Of parsed memberships: about 3,000 groups."""
_ENTRY_BYTES: Final = 1024
"""Of an entry without its content."""
_MAX_TEXT: Final = 300
"""Characters of a message, and of an unvalidated name."""
_MAX_LABELS: Final = 4096
"""Characters of a pod's labels."""
_MAX_GATES: Final = 16
_MAX_MANAGERS: Final = 16
_MAX_KEY: Final = 1000
_MAX_STATE: Final = 4096
"""Characters of the state annotation; what the controller writes is shorter."""
_MAX_JSON: Final = 64 * 1024
"""Bytes of a PodGroup's spec, or of its status."""

_PHASES: Final = {it: it for it in ("Pending", "Running", "Succeeded", "Failed", "Unknown")}
_LABELS: Final = (names.PLUGINS_NAME, names.ALIBABA_NAME, names.ALIBABA_MINIMUM, names.KOORDINATOR_LABEL)
_ANNOTATIONS: Final = (names.KEP24_NAME, *formats.KOORDINATOR_KEYS)
_NODE_OWNERS: Final = ("DaemonSet", "Node")
"""Kinds of owners whose pods belong to their node."""
_NONE: Final[Mapping[str, str]] = {}
_TOO_LARGE: Final[Json] = {}

_Pairs = tuple[tuple[str, str], ...]

_label_sets: Final = BoundedCache[Labels, Labels](_CACHE_BYTES)
_memberships: Final = BoundedCache[tuple[object, ...], Membership | None](_CACHE_BYTES)


# --- Pods ------------------------------------------------------------------------------------------------------------


def decode_member(seen: wire.GroupPod, ways: frozenset[Format] = formats.ALL_FORMATS) -> MemberPod:
    """A pod of a group, by its label or by a name in one of the enabled formats."""
    meta, spec, status = seen.metadata, seen.spec, seen.status
    labels, annotations = meta.labels or _NONE, meta.annotations or _NONE
    shape, unsupported, anti_affinity = template.placement_facts(spec)
    gates = tuple(it.name for it in spec.scheduling_gates or ())
    generation, ungated_at = parse_opened(annotations.get(names.POD_GROUP_OPENED, ""))
    return MemberPod(
        uid=meta.uid,
        namespace=intern_text(meta.namespace),
        name=meta.name,
        group_label=intern_text(labels.get(names.POD_GROUP_LABEL, "")),
        membership=_membership(meta, ways),
        shape=shape,
        unsupported=unsupported,
        anti_affinity=anti_affinity,
        labels=_shared_labels(labels),
        created=epoch_seconds(meta.creation_timestamp),
        priority=spec.priority or 0,
        preempts=spec.preemption_policy != "Never",
        controller=_controller(meta.owner_references),
        jobset=intern_text(labels.get(names.JS_NAME, "")),
        barrier=labels.get(names.GATED) == names.GATED_VALUE,
        gated=names.POD_GROUP_GATE in gates,
        foreign_gates=tuple(it for it in gates if it != names.POD_GROUP_GATE)[:_MAX_GATES],
        generation=generation,
        ungated_at=ungated_at,
        node=intern_text(spec.node_name),
        nominated=status.nominated_node_name != "",
        phase=_PHASES.get(status.phase, ""),
        deleting=meta.deletion_timestamp is not None,
        eviction_mark=annotations.get(names.POD_GROUP_TAKEN_BACK, "")[:_MAX_TEXT],
        native="" if spec.scheduling_group is None else spec.scheduling_group.pod_group_name,
        timed_out=annotations.get(names.KOORDINATOR_TIMED_OUT) == "true",
        unschedulable=_unschedulable(status),
    )


def decode_bound_pod(
    seen: wire.GroupPod,
    ways: frozenset[Format] = formats.ALL_FORMATS,
    schedulers: Collection[str] = (names.DEFAULT_SCHEDULER,),
    namespace: str | None = None,
) -> BoundPod | None:
    """A pod that has a node; also as a member, if it names a group and came past the webhook (Ungated).

    The requests are those of its spec: an in-place resize counts once the API server has it in the spec.
    """
    if not seen.spec.node_name:
        return None
    meta = seen.metadata
    ungated = namespace in (None, meta.namespace) and _matches_conditions(seen, schedulers)
    shape, _, anti_affinity = template.placement_facts(seen.spec)
    return BoundPod(
        uid=meta.uid,
        namespace=intern_text(meta.namespace),
        name=meta.name,
        node=intern_text(seen.spec.node_name),
        requests=shape.requests,
        priority=seen.spec.priority or 0,
        stays_on_node=_stays_on_node(meta),
        anti_affinity=anti_affinity,
        ungated=decode_member(seen, ways) if ungated and _membership(meta, ways) is not None else None,
    )


def parse_opened(text: str) -> tuple[int, float]:
    """Generation and time of the annotation; zeros for a text that is not ours."""
    number, _, moment = text.partition(" ")
    if not (number.isascii() and number.isdecimal()) or len(number) > 18:
        return 0, 0.0
    try:
        return int(number), datetime.fromisoformat(moment).astimezone(UTC).timestamp()
    except (ValueError, OverflowError):
        return 0, 0.0


def format_opened(generation: int, moment: float) -> str:
    """The value of the annotation."""
    stamp = datetime.fromtimestamp(moment, UTC).isoformat(timespec="milliseconds")
    return f"{generation} {stamp.replace('+00:00', 'Z')}"


def epoch_seconds(moment: datetime | None) -> float:
    """Since the epoch; 0 for None."""
    return 0.0 if moment is None else moment.timestamp()


def _membership(meta: wire.GroupPodMeta, ways: frozenset[Format]) -> Membership | None:
    labels, annotations = _picked(meta.labels, _LABELS), _picked(meta.annotations, _ANNOTATIONS)
    if not labels and not annotations:
        return None
    annotations += tuple((key, "") for key in formats.ignored_annotations(meta.annotations or (), _ANNOTATIONS))
    held = (meta.labels or _NONE).get(names.POD_GROUP_LABEL, "")
    key = meta.namespace, labels, annotations, ways, held
    if key in _memberships:
        return _memberships[key]
    raw = RawMetadata(namespace=meta.namespace, labels=dict(labels), annotations=dict(annotations))
    found = formats.parse_membership(raw, ways, held=held)
    size = sum(len(name) + len(value) for name, value in (*labels, *annotations))
    return _memberships.put(key, found, _ENTRY_BYTES + 3 * size)


def _picked(values: Mapping[str, str] | None, keys: tuple[str, ...]) -> _Pairs:
    """Longer values than are valid are cut."""
    return tuple((key, values[key][: fields.MAX_TEXT + 1]) for key in keys if key in values) if values else ()


def _controller(owners: tuple[TypedOwnerReference, ...] | None) -> ControllerRef | None:
    owner = next((it for it in owners or () if it.controller), None)
    if owner is None:
        return None
    api_version, kind, name, uid = (
        intern_text(it[:_MAX_TEXT]) for it in (owner.api_version, owner.kind, owner.name, owner.uid)
    )
    return ControllerRef(api_version=api_version, kind=kind, name=name, uid=uid)


def _matches_conditions(seen: wire.GroupPod, schedulers: Collection[str]) -> bool:
    """Whether the webhook would have patched the pod (G2), and has not."""
    meta, spec = seen.metadata, seen.spec
    controller = _controller(meta.owner_references)
    return (
        names.POD_GROUP_LABEL not in (meta.labels or _NONE)
        and spec.scheduler_name in schedulers
        and spec.scheduling_group is None
        and names.MIRROR_POD not in (meta.annotations or _NONE)
        and (controller is None or controller.kind != "DaemonSet")
    )


def _shared_labels(labels: Mapping[str, str]) -> Labels | None:
    """The same object for equal labels; None: too many."""
    found = constraints.stable_labels(labels.items())
    known = _label_sets.get(found)
    if known is not None:
        return known
    size = sum(len(key) + len(value) for key, value in found)
    return None if size > _MAX_LABELS else _label_sets.put(found, found, _ENTRY_BYTES + 2 * size)


def _stays_on_node(meta: wire.GroupPodMeta) -> bool:
    controller = _controller(meta.owner_references)
    by_node = controller is not None and controller.kind in _NODE_OWNERS
    return by_node or names.MIRROR_POD in (meta.annotations or _NONE)


def _unschedulable(status: wire.GroupPodStatus) -> str:
    """kube-scheduler's message, once it has tried."""
    for it in status.conditions or ():
        if it.type == "PodScheduled":
            waits = it.status != "True" and it.reason != "SchedulingGated"
            return intern_text(it.message[:_MAX_TEXT]) if waits else ""
    return ""


# --- Nodes -----------------------------------------------------------------------------------------------------------


def decode_node(seen: wire.Node) -> NodeAllocatable:
    """A node; equal to the one before unless something changed that matters to pods."""
    node = NodeFacts(
        name=seen.metadata.name,
        labels=seen.metadata.labels or _NONE,
        taints=tuple((it.key, it.value, it.effect) for it in seen.spec.taints or ()),
        unschedulable=seen.spec.unschedulable is True,
    )
    return NodeAllocatable(node=node, allocatable=_allocatable(seen.status.allocatable))


def _allocatable(amounts: Mapping[str, Any] | None) -> Amounts:
    """In thousandths, rounded down."""
    read = ((name, quantity.amount(value)) for name, value in (amounts or {}).items())
    return {intern_text(name): floor(amount * 1000) for name, amount in read if amount is not None}


# --- PodGroups and ConfigMaps ----------------------------------------------------------------------------------------


def decode_pod_group(seen: wire.PodGroup, api: str) -> RecordObject:
    """A PodGroup of this API group, with the record on it, if any."""
    meta = seen.metadata
    annotations = meta.annotations or _NONE
    spec = _decoded(seen.spec)
    body = {
        "apiVersion": f"{api}/{names.POD_GROUP_VERSION}",
        "kind": names.POD_GROUP,
        "metadata": {"name": meta.name, "namespace": meta.namespace, "uid": meta.uid, "annotations": annotations},
        "spec": spec or {},
    }
    pod_group = formats.parse_pod_group(body)
    if pod_group is not None and spec is _TOO_LARGE:
        too_large = FieldError("spec", None, f"is too large: must be at most {_MAX_JSON} bytes of JSON")
        pod_group = msgspec.structs.replace(pod_group, problems=(too_large,))
    path = annotation_path(names.POD_GROUP_RECORD)
    found, problem = _decode_record(annotations.get(names.POD_GROUP_RECORD), path)
    ref = _ref(api, meta)
    writers = {it.manager for it in meta.managed_fields or () if it.subresource == "status"}
    return RecordObject(
        ref=ref,
        pod_group=pod_group,
        created=epoch_seconds(meta.creation_timestamp),
        state=annotations.get(names.POD_GROUP_STATE, "")[:_MAX_STATE],
        status=as_map(_decoded(seen.status)),
        status_managers=tuple(sorted(writers - {names.FIELD_MANAGER}))[:_MAX_MANAGERS],
        # A PodGroup restored from a copy has the record of another.
        record=found if found is not None and found.home_uid in ("", ref.uid) else None,
        problem=problem,
    )


def decode_config_map(seen: wire.RecordConfigMap) -> RecordObject | None:
    """A ConfigMap with a record; None if its name is not that of its group."""
    meta = seen.metadata
    annotations = meta.annotations or _NONE
    key = parse_key(annotations.get(names.POD_GROUP_KEY, ""))
    if key is None:
        return None
    if (meta.namespace, meta.name) != (key.namespace, names.POD_GROUP_CONFIG_MAP_PREFIX + group_label(key)):
        return None
    found, problem = _decode_record((seen.data or {}).get(names.KEY_RECORD), child_path("data", names.KEY_RECORD))
    return RecordObject(
        ref=_ref("", meta),
        key=key,
        created=epoch_seconds(meta.creation_timestamp),
        state=annotations.get(names.POD_GROUP_STATE, "")[:_MAX_STATE],
        record=found,
        problem=problem,
    )


def format_key(key: PodGroupKey) -> str:
    """A key as an annotation's value: `<flavor>/<namespace>/<name>`."""
    return f"{key.flavor}/{key.namespace}/{key.name}"


def parse_key(text: str) -> PodGroupKey | None:
    """The key of an annotation's value; None if it is invalid."""
    if len(text) > _MAX_KEY:
        return None
    flavor, _, path = text.partition("/")
    namespace, slash, name = path.partition("/")
    if flavor not in list(Flavor) or not slash:
        return None
    return PodGroupKey(flavor=Flavor(flavor), namespace=namespace, name=name)


def _decoded(raw: msgspec.Raw) -> Any:
    return msgspec.json.decode(raw) if len(memoryview(raw)) <= _MAX_JSON else _TOO_LARGE


def _ref(api: str, meta: wire.RecordObjectMeta) -> RecordRef:
    name, namespace = meta.name, meta.namespace
    return RecordRef(api=api, namespace=namespace, name=name, uid=meta.uid, resource_version=meta.resource_version)


def _decode_record(text: str | None, path: str) -> tuple[AdmissionRecord | None, FieldError | None]:
    """An invalid record is an error, since it may have admitted the group."""
    if text is None:
        return None, None
    try:
        return record.decode_record(text), None
    except Malformed as problem:
        return None, FieldError(
            path, text[:100], f"is no record of ours ({problem.expected}); remove it to start again"
        )
