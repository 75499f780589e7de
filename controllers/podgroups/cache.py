"""Cache of pod groups, joined from the objects of several informers.

A pod belongs to the group of its label, whatever it names later (G2). An event costs time in proportion to what it
changes: a group is merged when it is read, and only if one of its sources has changed.
"""

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import msgspec

from controllers.podgroups.membership import PodGroupEntry, PodMembership
from controllers.podgroups.node_cache import NodeCache
from controllers.podgroups.predicates import Effect, classify
from controllers.podgroups.record_cache import ObjectPlace, RecordCache
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.evaluate import trusted_record
from jobset_gate.podgroups.model import FLAVOR_OF, MergedGroup, PodGroupKey
from jobset_gate.podgroups.preconditions import QuotaLimits, gang_key
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import BoundPod, GroupSnapshot, MemberPod, NodeAllocatable, RecordObject
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.settings import Groups

OnChange = Callable[[PodGroupKey | None, Effect], None]


class PodGroupCache:
    """All pod groups. Handlers of informers are synchronous; each effect of an event goes to the subscriber."""

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
        """`on_change(key, effect)` is called for every change from now on."""
        self._on_change = on_change

    # --- Handlers of informers --------------------------------------------------------------------------------------

    def on_member_pod(self, change: ObjectChange[MemberPod]) -> None:
        """A pod with our label was added, updated or deleted."""
        capacity = self._counts_capacity and self.nodes.set_member(change.key, change.new)
        self._members.set_labelled_pod(change.key, change.new)
        if capacity:
            self._on_change(None, Effect.CAPACITY)

    def on_bound_pod(self, change: ObjectChange[BoundPod]) -> None:
        """A pod was bound, updated, or uses no node any more; then it is no member without a label either."""
        new, known = change.new, self.nodes.bound_uid(change.key)
        capacity = self.nodes.set_bound(change.key, new)
        if known and (new is None or new.uid != known):
            self._members.set_bound_pod(known, None)
        if new is not None:
            self._members.set_bound_pod(new.uid, new.ungated)
        if capacity:
            self._on_change(None, Effect.CAPACITY)

    def on_record_object(self, change: ObjectChange[RecordObject]) -> None:
        """A PodGroup, or a ConfigMap with a record, was added, updated or deleted."""
        known = change.new or change.old
        if known is not None:
            self.set_record_object((known.ref.api, *change.key), change.new, Effect.CHANGED)

    def set_record_object(self, place: ObjectPlace, new: RecordObject | None, effect: Effect = Effect.RECORDED) -> None:
        """The same, as an answer to a read or write of this process, ahead of the informer."""
        for key in self._records.set_object(place, new):
            entry = self._members.ensure_entry(key)
            entry.group, entry.present, entry.record_is_current = None, None, False
            before, entry.reported = entry.reported, self._exists(entry)
            if before or entry.reported:  # a PodGroup may be that of several flavors, and is one group's
                self._on_change(key, effect)
            self._notify_partners(entry)
            self._members.prune_entry(entry, key.namespace)

    def on_node(self, change: ObjectChange[NodeAllocatable]) -> None:
        """A node was added, updated or deleted; heartbeats change nothing."""
        if self.nodes.set_node(change.key[1], change.new):
            self._on_change(None, Effect.CAPACITY)

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
            self._on_change(None, Effect.CAPACITY)

    # --- Queries -----------------------------------------------------------------------------------------------------

    def keys(self) -> Iterator[PodGroupKey]:
        """Groups that have members, a PodGroup, or a record."""
        return (it.key for it in self._members.entries() if it.key is not None and self._exists(it))

    def snapshot(self, key: PodGroupKey) -> GroupSnapshot | None:
        """All that is known of a group; None: it has neither members nor a PodGroup nor a record."""
        entry = self._members.entry(key)
        if entry is None or not self._exists(entry):
            return None
        group, record = self._present(key, entry), self._record(key, entry)
        pod_group = next((it for it in self._records.pod_groups(key) if it.pod_group == group.pod_group), None)
        home = self._records.object_to_write(key, pod_group)
        created = min((it.created for it in entry.members), default=0.0) if pod_group is None else pod_group.created
        return GroupSnapshot(
            group=group,
            label=entry.label,
            members=entry.members,
            created=created,
            record_ref=None if home is None else home.ref,
            record=self._trusted(group, record),
            pod_group_status={} if pod_group is None else pod_group.status,
            annotations={} if home is None else home.annotations,
            status_managers=() if pod_group is None else pod_group.status_managers,
        )

    def group(self, key: PodGroupKey) -> MergedGroup | None:
        """The gang that all sources of a group add up to."""
        entry = self._members.entry(key)
        return self._present(key, entry) if entry is not None and self._exists(entry) else None

    def unassigned_pods(self) -> Sequence[MemberPod]:
        """Pods with our label whose group no pod with that label names: no controller can admit them."""
        return [pod for it in self._members.entries() if it.key is None for pod in it.members]

    def quotas(self, namespace: str) -> Sequence[QuotaLimits]:
        """The ResourceQuotas of a namespace, by name."""
        return [it for _, it in sorted(self._quotas.get(namespace, {}).items())]

    def count_gated_pods(self) -> int:
        """Pods that our gate holds, of all groups."""
        return sum(pod.gated for it in self._members.entries() if it.key is not None for pod in it.members)

    def __len__(self) -> int:
        return len(self._members)

    # --- Effects -----------------------------------------------------------------------------------------------------

    def _on_pod(self, entry: PodGroupEntry, old: MemberPod | None, new: MemberPod | None) -> None:
        if entry.key is None:
            return
        effect = classify(entry, self._record(entry.key, entry), old, new)
        self._on_change(entry.key, effect)
        if effect in (Effect.DETAIL, Effect.GATHERING):
            return
        self._notify_partners(entry)
        first_or_last = (old is None and len(entry) == 1) or (new is None and entry.empty)
        for key in self._same_named(entry.key) if first_or_last else ():
            self._members.ensure_entry(key).reported = True
            self._on_change(key, Effect.CHANGED)  # the PodGroup is theirs as long as this group has no pod

    def _notify_partners(self, entry: PodGroupEntry) -> None:
        """What the other gangs of a GangGroup wait for may have changed here."""
        for path in entry.gangs:
            if entry.key is not None and path != entry.key.path:
                self._on_change(gang_key(path), Effect.DETAIL)

    # --- Details -----------------------------------------------------------------------------------------------------

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
        return all((it := self._members.entry(other)) is None or it.empty for other in self._same_named(key))

    def _same_named(self, key: PodGroupKey) -> Iterator[PodGroupKey]:
        """Groups of other flavors that have the same PodGroup."""
        for pod_group in self._records.pod_groups(key):
            for flavor in self._records.flavors_reading(pod_group.ref.api):
                if flavor is not key.flavor:
                    yield PodGroupKey(flavor=flavor, namespace=key.namespace, name=key.name)

    def _record(self, key: PodGroupKey, entry: PodGroupEntry) -> AdmissionRecord | None:
        if not entry.record_is_current or (entry.group is None and self._records.has_foreign_records(key)):
            gangs = self._merged(key, entry).gangs if self._records.has_foreign_records(key) else ()
            entry.record, entry.record_is_current = self._records.record_of(key, gangs), True
        return entry.record

    def _trusted(self, group: MergedGroup, record: AdmissionRecord | None) -> AdmissionRecord | None:
        if record is None or record.stage is AdmissionState.CLOSED:
            return record
        others = (self.group(key) for key, _ in record.gangs if key != group.key)
        return trusted_record(record, group, [group, *(it for it in others if it is not None)])

    def _present(self, key: PodGroupKey, entry: PodGroupEntry) -> MergedGroup:
        group, present = self._merged(key, entry), entry.count_present(self._record(key, entry))
        return group if present == group.present else msgspec.structs.replace(group, present=present)

    def _merged(self, key: PodGroupKey, entry: PodGroupEntry) -> MergedGroup:
        if entry.group is not None:
            return entry.group  # without looking for its record objects
        return entry.merged_group(key, self._records.objects_of(key), self._default_wait)
