"""Cache of pod groups, joined from the objects of several informers.

A pod belongs to the group of its label, whatever it names later (G2). An event costs time in proportion to what it
changes: a group is merged when it is read, and only if one of its sources has changed.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from controllers.podgroups.membership import PodGroupEntry, PodMembership
from controllers.podgroups.node_cache import NodeCache
from controllers.podgroups.record_cache import ObjectPlace, RecordCache
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.evaluate import trusted_record
from jobset_gate.podgroups.model import FLAVOR_OF, MergedGroup, PodGroupKey
from jobset_gate.podgroups.preconditions import QuotaLimits
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import BoundPod, GroupSnapshot, MemberPod, NodeAllocatable, RecordObject
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.settings import Groups

OnChange = Callable[[PodGroupKey | None, bool], None]
"""Gets the group that has changed, None for capacity, and whether its admission or its limit may depend on it."""


class PodGroupCache:
    """All pod groups. Handlers of informers are synchronous; each change goes to the subscriber."""

    def __init__(self, settings: Groups) -> None:
        self._on_change: OnChange = lambda _, __: None
        self._default_wait = Fraction(settings.wait_seconds)
        flavors = {FLAVOR_OF[it] for it in settings.ways}
        self._records = RecordCache(flavors, across_namespaces=settings.across_namespaces)
        self._members = PodMembership(self._on_pod, has_record_object=lambda key: bool(self._records.objects_of(key)))
        self.nodes = NodeCache()
        self._counts_capacity = settings.capacity_check is not CapacityCheck.OFF
        self._quotas: dict[str, dict[str, QuotaLimits]] = {}
        """By namespace and name."""

    def subscribe(self, on_change: OnChange) -> None:
        self._on_change = on_change

    # --- Handlers of informers --------------------------------------------------------------------------------------

    def on_member_pod(self, change: ObjectChange[MemberPod]) -> None:
        """A pod with our label was added, updated or deleted."""
        capacity = self._counts_capacity and self.nodes.set_member(change.old, change.new)
        old, new = (it if it is not None and it.group_label else None for it in (change.old, change.new))
        self._members.set_pod(old, new)
        if capacity:
            self._on_change(None, True)

    def on_bound_pod(self, change: ObjectChange[BoundPod]) -> None:
        """A pod was bound, updated, or uses no node any more; then it is no member without a label either."""
        capacity = self.nodes.set_bound(change.old, change.new)
        old, new = (None if it is None else it.ungated for it in (change.old, change.new))
        self._members.set_pod(old, new)
        if capacity:
            self._on_change(None, True)

    def on_record_object(self, change: ObjectChange[RecordObject]) -> None:
        """A PodGroup, or a ConfigMap with a record, was added, updated or deleted."""
        known = change.new or change.old
        if known is not None:
            self.set_record_object((known.ref.api, *change.key), change.new)

    def set_record_object(self, place: ObjectPlace, new: RecordObject | None) -> None:
        """The same, from a read or write of this process, ahead of the informer."""
        for key in self._records.set_object(place, new):
            entry = self._members.ensure_entry(key)
            entry.group = None
            self._on_change(key, True)
            self._members.prune_entry(entry, key.namespace)

    def on_node(self, change: ObjectChange[NodeAllocatable]) -> None:
        """A node was added, updated or deleted; heartbeats change nothing."""
        if self.nodes.set_node(change.key[1], change.new):
            self._on_change(None, True)

    def on_quota(self, change: ObjectChange[QuotaLimits]) -> None:
        """A ResourceQuota was added, updated or deleted."""
        (namespace, name), new = change.key, change.new
        quotas = self._quotas.setdefault(namespace, {})
        before = quotas.pop(name, None)
        if new is not None:
            quotas[name] = new
        if not quotas:
            del self._quotas[namespace]
        if before != new:
            self._on_change(None, True)

    # --- Queries -----------------------------------------------------------------------------------------------------

    def keys(self) -> Iterator[PodGroupKey]:
        """Groups that have members, a PodGroup, or a record."""
        return (it.key for it in self._members.entries() if it.key is not None and self._exists(it))

    def snapshot(self, key: PodGroupKey) -> GroupSnapshot | None:
        """All that is known of a group; None: it has neither members nor a PodGroup nor a record."""
        entry = self._members.entry(key)
        if entry is None or not self._exists(entry):
            return None
        group = self._merged(key, entry)
        pod_group = next((it for it in self._records.pod_groups(key) if it.pod_group == group.pod_group), None)
        home = self._records.object_to_write(key, pod_group)
        created = min((it.created for it in entry.members), default=0.0) if pod_group is None else pod_group.created
        return GroupSnapshot(
            group=group,
            label=entry.label,
            members=entry.members,
            created=created,
            record_ref=None if home is None else home.ref,
            own_record=None if home is None else home.record,
            record=self._trusted(group, self._records.record_of(key, group.gangs)),
            pod_group_status={} if pod_group is None else pod_group.status,
            state="" if home is None else home.state,
            status_managers=() if pod_group is None else pod_group.status_managers,
        )

    def group(self, key: PodGroupKey) -> MergedGroup | None:
        """The gang that all sources of a group add up to."""
        entry = self._members.entry(key)
        return self._merged(key, entry) if entry is not None and self._exists(entry) else None

    def unassigned_pods(self) -> Sequence[MemberPod]:
        """Pods with our label whose group no pod with that label names: no controller can admit them."""
        return [pod for it in self._members.entries() if it.key is None for pod in it.members]

    def quotas(self, namespace: str) -> Sequence[QuotaLimits]:
        """The ResourceQuotas of a namespace, by name."""
        return [it for _, it in sorted(self._quotas.get(namespace, {}).items())]

    def count_gated_pods(self) -> int:
        """Pods that our gate holds, of all groups."""
        return sum(pod.gated for it in self._members.entries() if it.key is not None for pod in it.members)

    # --- Details -----------------------------------------------------------------------------------------------------

    def _on_pod(self, entry: PodGroupEntry, old: MemberPod | None, new: MemberPod | None) -> None:
        if entry.key is None:
            return
        self._on_change(entry.key, is_urgent(entry, self._records.record_of(entry.key), old, new))
        first_or_last = (old is None and len(entry) == 1) or (new is None and entry.empty)
        for pod_group in self._records.pod_groups(entry.key) if first_or_last else ():
            for key in self._other_readers(entry.key, pod_group):
                self._members.ensure_entry(key)
                self._on_change(key, True)  # the PodGroup is theirs as long as this group has no pod

    def _exists(self, entry: PodGroupEntry) -> bool:
        """Whether it is a group: it has members, a record, or a PodGroup that is no other group's."""
        key = entry.key
        if key is None or not entry.empty:
            return key is not None
        return any(it.pod_group is None or self._owns(key, it) for it in self._records.objects_of(key))

    def _owns(self, key: PodGroupKey, pod_group: RecordObject) -> bool:
        """A PodGroup without pods belongs to the first flavor that reads it, unless another flavor's group has pods."""
        if key.flavor is not next(iter(self._records.flavors_reading(pod_group.ref.api)), None):
            return False
        others = self._other_readers(key, pod_group)
        return all((it := self._members.entry(other)) is None or it.empty for other in others)

    def _other_readers(self, key: PodGroupKey, pod_group: RecordObject) -> Iterator[PodGroupKey]:
        """Groups of other flavors that read this PodGroup."""
        for flavor in self._records.flavors_reading(pod_group.ref.api):
            if flavor is not key.flavor:
                yield PodGroupKey(flavor=flavor, namespace=key.namespace, name=key.name)

    def _trusted(self, group: MergedGroup, record: AdmissionRecord | None) -> AdmissionRecord | None:
        if record is None or record.stage is AdmissionState.CLOSED:
            return record
        others = (self.group(key) for key, _ in record.gangs if key != group.key)
        return trusted_record(record, group, [group, *(it for it in others if it is not None)])

    def _merged(self, key: PodGroupKey, entry: PodGroupEntry) -> MergedGroup:
        if entry.group is not None:
            return entry.group  # without looking for its record objects
        objects = self._records.objects_of(key)
        return entry.merge(key, objects, lambda gangs: self._records.record_of(key, gangs), self._default_wait)


# --- Which changes of pods are urgent --------------------------------------------------------------------------------


def is_urgent(
    entry: PodGroupEntry, record: AdmissionRecord | None, old: MemberPod | None, new: MemberPod | None
) -> bool:
    """Whether an admission may follow from the change of a pod, or its minimum may be bound, if only for a moment.

    Reading a group costs time per pod, so one that lacks k members, or k bound pods, is not read at once for each.
    """
    if old is None and new is not None and new.gated and record is None:
        return not 1 < len(entry) < entry.needed
    if _scheduling_facts(old) == _scheduling_facts(new):
        return False
    if old is None or new is None or record is None or not _progressed(record, old, new):
        return True
    return new.bound and not old.bound and record.satisfied is None and entry.bound_count >= record.minimum


def _progressed(record: AdmissionRecord, old: MemberPod, new: MemberPod) -> bool:
    """Whether a pod of an admitted group was ungated, bound or started, and nothing else."""
    if record.stage is not AdmissionState.OPEN or len(record.gangs) > 1 or record.how is AdmissionMode.NATIVE:
        return False
    if not (old.is_counted and new.is_counted) or _fixed_facts(old) != _fixed_facts(new):
        return False
    return new.bound >= old.bound and new.gated <= old.gated


def _scheduling_facts(pod: MemberPod | None) -> object:
    """All of a pod that admission depends on; many events of a pod are about something else."""
    if pod is None:
        return None
    return _fixed_facts(pod), pod.is_counted, pod.bound, pod.gated, pod.generation, pod.deleting, pod.ended


def _fixed_facts(pod: MemberPod) -> object:
    """What stays the same while a pod is ungated, bound and run."""
    return (
        pod.uid,
        pod.membership,
        pod.shape,
        pod.unsupported,
        pod.barrier,
        pod.priority,
        pod.native,
        pod.foreign_gates,
        pod.eviction_mark,
    )
