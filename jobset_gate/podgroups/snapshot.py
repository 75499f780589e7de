"""What is seen of groups in a cluster, joined from pods, PodGroups and records: the words of keepers and people alike.

Times are seconds since the epoch.
"""

from collections.abc import Mapping
from types import MappingProxyType

from jobset_gate.barrier.model import Value
from jobset_gate.objects.field_error import FieldError
from jobset_gate.podgroups import formats
from jobset_gate.podgroups.fit.constraints import Amounts, AntiAffinityTerm, Labels, NodeFacts
from jobset_gate.podgroups.fit.guaranteed import PodShape
from jobset_gate.podgroups.model import Membership, MergedGroup, PodGroupKey, PodGroupSource
from jobset_gate.podgroups.record import AdmissionRecord


class ControllerRef(Value, frozen=True):
    """The controller that a pod's owner references name."""

    api_version: str
    kind: str
    name: str
    uid: str


class MemberPod(Value, frozen=True):
    """A pod that carries the label of a group, or that names one and is bound without it (Ungated)."""

    uid: str
    namespace: str
    name: str
    group_label: str
    """Its label: the hash of the group it was taken for; "" if it never was."""
    membership: Membership | None
    """What it says by now; membership goes by `held`, and a difference is reported only (G2)."""
    shape: PodShape
    """Of one pod. The same object for all pods that are alike."""
    unsupported: tuple[str, ...] = ()
    anti_affinity: tuple[AntiAffinityTerm, ...] = ()
    """Whom it keeps away from where it runs."""
    labels: Labels | None = ()
    """None: too many to be kept."""
    created: float = 0.0
    priority: int = 0
    preempts: bool = True
    """The scheduler may take the place of pods of lower priority for it."""
    controller: ControllerRef | None = None
    jobset: str = ""
    """Name of the JobSet that its Job belongs to."""
    barrier: bool = False
    """It waits in the start barrier, too."""
    gated: bool = False
    """Our gate still holds it."""
    foreign_gates: tuple[str, ...] = ()
    generation: int = 0
    """In which it was opened; 0: never."""
    ungated_at: float = 0.0
    node: str = ""
    nominated: bool = False
    """The scheduler has chosen a node for it, and others there have to end first."""
    phase: str = ""
    deleting: bool = False
    eviction_mark: str = ""
    """Whatever the roll-back has written on it."""
    native: str = ""
    """The native PodGroup that its stored spec names."""
    timed_out: bool = False
    """It carries Koordinator's mark."""
    unschedulable: str = ""
    """The scheduler's own words, "" if it has said nothing."""

    @property
    def alive(self) -> bool:
        """Not failed and not being deleted; one that has succeeded counts as there."""
        return not self.deleting and self.phase != "Failed"

    @property
    def bound(self) -> bool:
        """It has a node, or had one and has succeeded."""
        return self.node != "" or self.phase == "Succeeded"

    @property
    def ungated(self) -> bool:
        """Neither held by us nor opened by us."""
        return not self.gated and not self.generation

    @property
    def is_counted(self) -> bool:
        """It is one of those that the minimum asks for: alive, and without our gate only if it is bound (G2)."""
        return self.alive and (self.bound or not self.ungated)

    @property
    def moved(self) -> bool:
        """It names another group by now than the one it was taken for, or none."""
        return self.group_label != "" and formats.membership_changed(self.membership, self.group_label)


class BoundPod(Value, frozen=True):
    """A pod that takes up room on a node, whosever it is."""

    uid: str
    namespace: str
    name: str
    node: str
    requests: Amounts
    """The same object for all pods that are alike."""
    priority: int = 0
    anti_affinity: tuple[AntiAffinityTerm, ...] = ()
    stays_on_node: bool = False
    """It belongs to its node, so nobody ever gets its place: a DaemonSet's, or a static pod."""
    ungated: MemberPod | None = None
    """The pod as a member of the group that it names, if it was never taken for one."""


class NodeAllocatable(Value, frozen=True):
    """A node, and what pods may take up on it."""

    node: NodeFacts
    allocatable: Amounts


class RecordRef(Value, frozen=True):
    """The object that a group's record is kept on, as it was read: its version makes every write a compare-and-swap."""

    api: str
    """API group of the PodGroup; "" for a ConfigMap of ours."""
    namespace: str
    name: str
    uid: str
    resource_version: str


class RecordObject(Value, frozen=True):
    """An object that a record may be kept on: a PodGroup, or a ConfigMap of ours."""

    ref: RecordRef
    key: PodGroupKey | None = None
    """Of a ConfigMap: whose it is. A PodGroup is that of every design that looks into its API group."""
    pod_group: PodGroupSource | None = None
    created: float = 0.0
    annotations: Mapping[str, str] = MappingProxyType({})
    status: Mapping[str, object] = MappingProxyType({})
    """As JSON."""
    status_managers: tuple[str, ...] = ()
    """Who else writes its status."""
    record: AdmissionRecord | None = None
    problem: FieldError | None = None
    """Why what stands there as a record is none."""


class GroupSnapshot(Value, frozen=True):
    """All that is known of one group at one moment."""

    group: MergedGroup
    label: str
    members: tuple[MemberPod, ...]
    created: float
    """Of its PodGroup, else of its oldest member."""
    record_ref: RecordRef | None = None
    """None: its PodGroup is missing, or its ConfigMap is not made yet."""
    record: AdmissionRecord | None = None
    """What was decided of it last, be it written on it or on the first gang of its GangGroup."""
    pod_group_status: Mapping[str, object] = MappingProxyType({})
    """status of its PodGroup, as JSON."""
    annotations: Mapping[str, str] = MappingProxyType({})
    """Of its home."""
    status_managers: tuple[str, ...] = ()
    """Other controllers that write the status of its PodGroup; then we only read it (G5)."""

    @property
    def generation(self) -> int:
        """The last one that was opened; 0: none yet."""
        return 0 if self.record is None else self.record.generation
