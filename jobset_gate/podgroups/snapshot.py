"""Snapshot of a group, joined from pods, PodGroup and admission record. Times are seconds since the epoch."""

from collections.abc import Mapping
from types import MappingProxyType

from jobset_gate.barrier.model import Value
from jobset_gate.objects.field_error import FieldError
from jobset_gate.podgroups.fit.constraints import Amounts, AntiAffinityTerm, Labels, NodeFacts
from jobset_gate.podgroups.fit.guaranteed import PodShape
from jobset_gate.podgroups.model import Membership, MergedGroup, PodGroupKey, PodGroupSource, group_label
from jobset_gate.podgroups.record import AdmissionRecord


class ControllerRef(Value, frozen=True):
    """The controller owner reference of a pod."""

    api_version: str
    kind: str
    name: str
    uid: str


class MemberPod(Value, frozen=True):
    """A pod with the label of a group, or bound without it though it names one (Ungated)."""

    uid: str
    namespace: str
    name: str
    group_label: str
    """The hash of its group; "" if the webhook did not set it."""
    membership: Membership | None
    """What it says now; its group is that of the label, and a difference is reported only (G2)."""
    shape: PodShape
    """Of one pod; the same object for equal pods."""
    unsupported: tuple[str, ...] = ()
    anti_affinity: tuple[AntiAffinityTerm, ...] = ()
    """Pods that it repels."""
    labels: Labels | None = ()
    """None: too many."""
    created: float = 0.0
    priority: int = 0
    preempts: bool = True
    """It may preempt pods of lower priority."""
    controller: ControllerRef | None = None
    jobset: str = ""
    """Name of its JobSet."""
    barrier: bool = False
    """It has the start barrier, too."""
    gated: bool = False
    """It has our gate."""
    foreign_gates: tuple[str, ...] = ()
    generation: int = 0
    """In which it was ungated; 0: never."""
    ungated_at: float = 0.0
    node: str = ""
    nominated: bool = False
    """The scheduler has chosen a node for it, and preempts pods there."""
    phase: str = ""
    deleting: bool = False
    eviction_mark: str = ""
    """Written by an eviction."""
    native: str = ""
    """The native PodGroup of its stored spec."""
    timed_out: bool = False
    """It has Koordinator's annotation."""
    unschedulable: str = ""
    """kube-scheduler's message; "" if it has not tried."""

    @property
    def alive(self) -> bool:
        """Neither Failed nor terminating; a succeeded pod counts."""
        return not self.deleting and self.phase != "Failed"

    @property
    def bound(self) -> bool:
        """It has a node, or has succeeded."""
        return self.node != "" or self.phase == "Succeeded"

    @property
    def ended(self) -> bool:
        """Succeeded or Failed: its node and its quota do not account for it."""
        return self.phase in ("Succeeded", "Failed")

    @property
    def ungated(self) -> bool:
        """It never had our gate."""
        return not self.gated and not self.generation

    @property
    def is_counted(self) -> bool:
        """Whether it counts for the minimum: alive, and if it never had our gate, bound (G2)."""
        return self.alive and (self.bound or not self.ungated)

    @property
    def moved(self) -> bool:
        """It names another group now than that of its label, or none."""
        named = "" if self.membership is None else group_label(self.membership.key)
        return self.group_label not in ("", named)


class BoundPod(Value, frozen=True):
    """A pod that uses resources of a node."""

    uid: str
    namespace: str
    name: str
    node: str
    requests: Amounts
    """The same object for equal pods."""
    priority: int = 0
    anti_affinity: tuple[AntiAffinityTerm, ...] = ()
    stays_on_node: bool = False
    """Of a DaemonSet, or a static pod: no other pod ever gets its place."""
    ungated: MemberPod | None = None
    """The pod as a member, if it names a group and has no label."""


class NodeAllocatable(Value, frozen=True):
    """A node and its allocatable resources."""

    node: NodeFacts
    allocatable: Amounts


class RecordRef(Value, frozen=True):
    """Reference to the object that stores a record; its resourceVersion makes each write a compare-and-swap."""

    api: str
    """API group of the PodGroup; "" for a ConfigMap."""
    namespace: str
    name: str
    uid: str
    resource_version: str


class RecordObject(Value, frozen=True):
    """An object that may store a record: a PodGroup, or a ConfigMap of this controller."""

    ref: RecordRef
    key: PodGroupKey | None = None
    """Of a ConfigMap. A PodGroup belongs to every flavor that reads its API group."""
    pod_group: PodGroupSource | None = None
    created: float = 0.0
    state: str = ""
    """Our annotation with its state."""
    status: Mapping[str, object] = MappingProxyType({})
    """As JSON."""
    status_managers: tuple[str, ...] = ()
    """Other field managers of its status."""
    record: AdmissionRecord | None = None
    problem: FieldError | None = None
    """Why its record is invalid."""


class GroupSnapshot(Value, frozen=True):
    """All that the cache knows of a group."""

    group: MergedGroup
    label: str
    members: tuple[MemberPod, ...]
    created: float
    """Of its PodGroup, else of its oldest member."""
    record_ref: RecordRef | None = None
    """None: its PodGroup is missing, or its ConfigMap not created yet."""
    own_record: AdmissionRecord | None = None
    """As that object stores it."""
    record: AdmissionRecord | None = None
    """The last decision, stored with it or with the first gang of its GangGroup."""
    pod_group_status: Mapping[str, object] = MappingProxyType({})
    """status of its PodGroup, as JSON."""
    state: str = ""
    """The annotation of the object that stores the record."""
    status_managers: tuple[str, ...] = ()
    """Other field managers of its PodGroup's status; then it is only read (G5)."""

    @property
    def generation(self) -> int:
        """The last admitted one; 0: none yet."""
        return 0 if self.record is None else self.record.generation
