"""What the informers know of groups, joined: changes come in, keys of groups to look at go out.

A pod belongs to the group of its label, whatever it says later (G2). One event costs time in proportion to what it
changes: a group is put together anew when somebody asks for it, and only if something in it is different.

A look at a group costs time in proportion to its pods, so not every event may cause one: a group that lacks k members
cannot be opened before k more have come, and one that is open and lacks k bound ones is not satisfied before k more
are bound. Until then it is looked at at leisure. That is a hint and decides nothing: every look counts anew.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction

import msgspec

from controllers.podgroups import predicates
from controllers.podgroups.entry import PodGroupEntry
from controllers.podgroups.membership import PodMembership
from controllers.podgroups.node_cache import NodeCache
from controllers.podgroups.node_consumers import NodeConsumers
from controllers.podgroups.quota_cache import QuotaCache
from controllers.podgroups.record_cache import RecordCache
from controllers.podgroups.views import PodGroupMapping
from jobset_gate.podgroups.candidate import CapacityCheck
from jobset_gate.podgroups.decision import trusted_record
from jobset_gate.podgroups.fit.anti_affinity import LabelledPod
from jobset_gate.podgroups.fit.guaranteed import NodeInfo
from jobset_gate.podgroups.gang_groups import gang_key as key_of
from jobset_gate.podgroups.model import FLAVOR_OF, MergedGroup, PodGroupKey
from jobset_gate.podgroups.quota import QuotaLimits
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import (
    BoundPod,
    GroupSnapshot,
    MemberPod,
    NodeAllocatable,
    RecordObject,
    RecordRef,
)
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.settings import Groups

Wake = Callable[[PodGroupKey], None]
Changed = Callable[[PodGroupKey | None], None]


class PodGroupCache:
    """Groups, joined from the changes of several informers. Its handlers are synchronous and cheap."""

    def __init__(
        self,
        wake: Wake,
        changed: Changed,
        settings: Groups,
        *,
        gathers: Wake | None = None,
        goes_on: Wake | None = None,
        met: Wake | None = None,
        placed: Wake | None = None,
    ) -> None:
        """`wake`: look at this group. `changed`: what opening depends on is another in a group, or (None) around it.

        `gathers`: instead of both, it has one pod more and lacks others still. `goes_on`: instead of `wake`, it has
        come on a little. `met`: instead of `wake`, its minimum may be bound, if only for a moment. `placed`: instead of
        `changed`, it needs no more room than before, and perhaps less.
        """
        self._wake, self._changed = wake, changed
        self._gathers = gathers or self._look_at
        self._goes_on, self._met, self._placed = goes_on or wake, met or wake, placed or changed
        self._default_wait = Fraction(settings.wait_seconds)
        designs = {FLAVOR_OF[way] for way in settings.ways}
        self._homes = RecordCache(designs, across_namespaces=settings.across_namespaces)
        self._seats = PodMembership(self._differs, has_home=lambda key: bool(self._homes.objects_of(key)))
        self._rooms = NodeCache()
        self._takers = NodeConsumers(self._rooms)
        self._reckons = settings.capacity_check is not CapacityCheck.OFF
        self._quotas = QuotaCache()

    # --- Changes ----------------------------------------------------------------------------------------------------

    def on_member_pod(self, change: ObjectChange[MemberPod]) -> None:
        """A pod with our label came, changed or went."""
        news = self._reckons and self._takers.set_member(change.key, change.new)
        self._seats.set_labelled_pod(change.key, change.new)
        if news:
            self._changed(None)

    def on_bound_pod(self, change: ObjectChange[BoundPod]) -> None:
        """A pod was bound, changed, or takes up no room any more; then it is no ungated member any more either."""
        new, was = change.new, self._takers.bound_uid(change.key)
        news = self._takers.set_bound(change.key, new)
        if was and (new is None or new.uid != was):
            self._seats.set_bound_pod(was, None)
        if new is not None:
            self._seats.set_bound_pod(new.uid, new.ungated)
        if news:
            self._changed(None)

    def on_pod_group(self, change: ObjectChange[RecordObject]) -> None:
        """A PodGroup came, changed or went."""
        self._on_home(change)

    def on_config_map(self, change: ObjectChange[RecordObject]) -> None:
        """A ConfigMap with a record came, changed or went."""
        self._on_home(change)

    def on_node(self, change: ObjectChange[NodeAllocatable]) -> None:
        """A node came, changed or went; most of what kubelets say of it is nothing new."""
        if self._rooms.set_node(change.key[1], change.new):
            self._changed(None)

    def on_quota(self, change: ObjectChange[QuotaLimits]) -> None:
        """A ResourceQuota came, changed or went; every pod that is made or gone changes what is used of it."""
        if self._quotas.put_quota(change.key, change.new):
            self._changed(None)

    # --- What our own writes have shown -----------------------------------------------------------------------------

    def record_observed(self, key: PodGroupKey, home: RecordRef, record: AdmissionRecord | None) -> None:
        """The API has answered with this version of a group's home, and this record on it: whoever asked goes on."""
        self._concern(self._homes.observe_write(key, home, record), self._goes_on)

    def record_object_gone(self, key: PodGroupKey, home: RecordRef) -> None:
        """The API has answered that this home of a group is gone."""
        self._concern(self._homes.observe_gone(home) | {key}, self._wake)

    # --- Looking ----------------------------------------------------------------------------------------------------

    def keys(self) -> Iterator[PodGroupKey]:
        """Groups that have members, a PodGroup, or a record."""
        return (parts.key for parts in self._seats.entries() if parts.key is not None and self._shows(parts))

    def snapshot(self, key: PodGroupKey) -> GroupSnapshot | None:
        """All that is known of a group; None when it has neither members nor a PodGroup, and no record is left."""
        parts = self._seats.entry(key)
        if parts is None or not self._shows(parts):
            return None
        group, record = self._counted(key, parts), self._record(key, parts)
        pod_group = next((it for it in self._homes.pod_groups(key) if it.pod_group == group.pod_group), None)
        home = self._homes.object_to_write(key, pod_group)
        created = min((it.created for it in parts.members), default=0.0) if pod_group is None else pod_group.created
        return GroupSnapshot(
            group=group,
            label=parts.label,
            members=parts.members,
            created=created,
            record_ref=None if home is None else home.ref,
            record=self._believed(group, record),
            pod_group_status={} if pod_group is None else pod_group.status,
            annotations={} if home is None else home.annotations,
            status_managers=() if pod_group is None else pod_group.status_managers,
        )

    def group(self, key: PodGroupKey) -> MergedGroup | None:
        """The gang that all sources of a group come to."""
        parts = self._seats.entry(key)
        return self._counted(key, parts) if parts is not None and self._shows(parts) else None

    def groups(self) -> Mapping[PodGroupKey, MergedGroup]:
        """All of them: a live view, which puts together only what is asked for."""
        return PodGroupMapping(self.group, self.keys)

    def unassigned_pods(self) -> Sequence[MemberPod]:
        """Pods with a label of ours of which nothing tells whose it is; nobody can open them."""
        return [it for parts in self._seats.entries() if parts.key is None for it in parts.members]

    def quotas(self, namespace: str) -> Sequence[QuotaLimits]:
        """The ResourceQuotas of a namespace, by name."""
        return self._quotas.quotas_in(namespace)

    def node_infos(self) -> Sequence[NodeInfo]:
        """What is free on each node, by its name; the same objects as before where nothing has changed."""
        return self._rooms.node_infos()

    def excluded_nodes(self, marks: Iterable[LabelledPod]) -> frozenset[str]:
        """The nodes from which bound pods keep one of such pods away, by their anti-affinity."""
        return self._rooms.excluded_nodes(marks)

    def accounts_for(self, uid: str) -> bool:
        """Whether what this pod takes up is in rooms() already. Not once it has finished: then it takes up nothing."""
        return self._rooms.has_pod(uid)

    def __len__(self) -> int:
        return len(self._seats)

    # --- Who is told ------------------------------------------------------------------------------------------------

    def _differs(self, parts: PodGroupEntry, old: MemberPod | None, new: MemberPod | None) -> None:
        if parts.key is None:
            return
        record = self._record(parts.key, parts)
        news = old is None and new is not None and new.gated and record is None
        if news and predicates.still_gathers(parts):
            self._gathers(parts.key)
            return
        comes_on = predicates.only_progressed(record, old, new)
        waits = news or (comes_on and predicates.can_wait(record, parts, old, new))
        # Whether one that was never opened may be, is not decided here: the opener hears of it below.
        if waits:
            self._goes_on(parts.key)
        else:
            self._met(parts.key) if comes_on else self._wake(parts.key)
        if predicates.scheduling_facts(old) == predicates.scheduling_facts(new):
            return
        self._placed(parts.key) if comes_on else self._changed(parts.key)
        self._wake_others(parts)
        first_or_last = (old is None and len(parts) == 1) or (new is None and parts.empty)
        for key in self._namesakes(parts.key) if first_or_last else ():
            self._seats.ensure_entry(key).announced = True
            self._wake(key)  # which has this group's PodGroup as long as nobody names it
            self._changed(key)

    def _on_home(self, change: ObjectChange[RecordObject]) -> None:
        concerned: set[PodGroupKey] = set()
        if change.old is not None and (change.new is None or change.new.ref.uid != change.old.ref.uid):
            concerned |= self._homes.remove_object(change.old)
        if change.new is not None:
            concerned |= self._homes.put_object(change.new)
        self._concern(concerned, self._wake)

    def _concern(self, keys: set[PodGroupKey], wake: Wake) -> None:
        """Something is different about the homes of these groups."""
        for key in keys:
            parts = self._seats.ensure_entry(key)
            parts.group, parts.record_is_current = None, False
            before, parts.announced = parts.announced, self._shows(parts)
            if before or parts.announced:  # a PodGroup concerns all designs that look for it, but it is one group's
                wake(key)
                self._changed(key)
            self._wake_others(parts)
            self._seats.prune_entry(parts, key.namespace)

    def _wake_others(self, parts: PodGroupEntry) -> None:
        """The other gangs of its GangGroup, as far as they are known, wait for what changes here."""
        for path in parts.gangs:
            if parts.key is not None and path != parts.key.path:
                self._wake(key_of(path))

    def _look_at(self, key: PodGroupKey) -> None:
        self._wake(key)
        self._changed(key)

    def _record(self, key: PodGroupKey, parts: PodGroupEntry) -> AdmissionRecord | None:
        if not parts.record_is_current or (parts.group is None and self._homes.has_foreign_records(key)):
            gangs = self._merged(key, parts).gangs if self._homes.has_foreign_records(key) else ()
            parts.record, parts.record_is_current = self._homes.record_of(key, gangs), True
        return parts.record

    # --- Details ----------------------------------------------------------------------------------------------------

    def _shows(self, parts: PodGroupEntry) -> bool:
        """Whether it is a group: it has members, a record, or a PodGroup that is not another's."""
        if parts.key is None or not parts.empty:
            return parts.key is not None
        key = parts.key
        return any(it.pod_group is None or self._owns(key, it) for it in self._homes.objects_of(key))

    def _owns(self, key: PodGroupKey, home: RecordObject) -> bool:
        """A PodGroup without members is that of the first design that looks for it, unless another has members."""
        if key.design is not next(iter(self._homes.designs_reading(home.ref.api)), None):
            return False
        return all((parts := self._seats.entry(it)) is None or parts.empty for it in self._namesakes(key))

    def _namesakes(self, key: PodGroupKey) -> Iterator[PodGroupKey]:
        """The groups of other designs that have the same PodGroup."""
        for home in self._homes.pod_groups(key):
            for design in self._homes.designs_reading(home.ref.api):
                if design is not key.design:
                    yield PodGroupKey(design=design, namespace=key.namespace, name=key.name)

    def _counted(self, key: PodGroupKey, parts: PodGroupEntry) -> MergedGroup:
        group, present = self._merged(key, parts), parts.present_count(self._record(key, parts))
        return group if present is None else msgspec.structs.replace(group, present=present)

    def _believed(self, group: MergedGroup, record: AdmissionRecord | None) -> AdmissionRecord | None:
        if record is None or record.stage is AdmissionState.CLOSED:
            return record
        others = (self.group(key) for key, _ in record.gangs if key != group.key)
        return trusted_record(record, group, [group, *(it for it in others if it is not None)])

    def _merged(self, key: PodGroupKey, parts: PodGroupEntry) -> MergedGroup:
        if parts.group is not None:
            return parts.group  # before its homes are looked for
        return parts.merged_group(key, self._homes.objects_of(key), self._default_wait)
