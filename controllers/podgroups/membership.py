"""Which pod belongs to which group: by its label, or by what it names once it is bound without one (G2)."""

from collections.abc import Callable, Collection, Sequence
from fractions import Fraction
from typing import Final

import msgspec

from jobset_gate.podgroups import merge
from jobset_gate.podgroups.generation import MemberTable
from jobset_gate.podgroups.model import (
    FLAVOR_OF,
    Flavor,
    Format,
    Membership,
    MemberSource,
    MergedGroup,
    PodGroupKey,
    group_label,
)
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import MemberPod, RecordObject

_EntryKey = tuple[str, str]
"""(Namespace, label): a label counts in its group's namespace only, since any user may set it on a pod."""

_FORMAT: Final = {flavor: next(it for it in Format if FLAVOR_OF[it] is flavor) for flavor in Flavor}


class PodGroupEntry:
    """One group: its pods, and the gang that pods and PodGroups add up to, kept until one of them changes."""

    def __init__(self, label: str, key: PodGroupKey | None = None) -> None:
        """`key` is None until a pod with the label names its group."""
        self.label, self.key = label, key
        self.group: MergedGroup | None = None
        """As last merged; None: it has to be merged again."""
        self.needed = 0
        """Pods, for its minimum, if these are all that it lacked as last merged; else 0."""
        self.bound_count = 0
        """Pods with a node, in any state."""
        self._labelled: dict[str, MemberPod] = {}
        """By UID: pods that carry the label."""
        self._unlabelled: dict[str, MemberPod] = {}
        """By UID: bound pods that name the group and carry no label."""
        self._members: tuple[MemberPod, ...] | None = None

    @property
    def members(self) -> tuple[MemberPod, ...]:
        """All pods, by name."""
        if self._members is None:
            both = {**self._unlabelled, **self._labelled}
            self._members = tuple(sorted(both.values(), key=lambda it: (it.name, it.uid)))
        return self._members

    @property
    def empty(self) -> bool:
        """Whether the group has no pod."""
        return not self._labelled and not self._unlabelled

    def __len__(self) -> int:
        return len(self._labelled) + len(self._unlabelled)

    def merge(
        self,
        key: PodGroupKey,
        objects: Sequence[RecordObject],
        record_of: Callable[[Collection[str]], AdmissionRecord | None],
        default_wait: Fraction,
    ) -> MergedGroup:
        """The gang that pods and PodGroups add up to. An unreadable record is a problem: it may admit the group.

        `record_of` gives the record of a group that names these gangs.
        """
        sources = [MemberSource(pod=it.name, membership=_membership(key, it)) for it in self.members]
        pod_groups = [it.pod_group for it in objects if it.pod_group is not None]
        group = merge.merge_group(key, sources, pod_groups, default_wait=default_wait)
        if not sources and not pod_groups:
            group = _from_record(group, next((it.record for it in objects if it.record is not None), None))
        unreadable = tuple(it.problem for it in objects if it.problem is not None)
        present = len(MemberTable(self.members, record_of(group.gangs)).present)
        problems = (*group.problems, *unreadable)
        self.group = group = msgspec.structs.replace(group, present=present, problems=problems)
        more_lacks = group.gangs or group.pod_group_missing or group.gathered or not group.valid
        self.needed = 0 if more_lacks else group.minimum or 0
        return group

    def set_pod(self, member: MemberPod, new: MemberPod | None) -> MemberPod | None:
        """The pod with the UID of `member` is `new` now; None: it is gone. Returns the one before."""
        pods, uid = self._labelled if member.group_label else self._unlabelled, member.uid
        old = pods.get(uid)
        if old == new:
            return old
        self._members = self.group = None
        self.bound_count += (new is not None and new.bound) - (old is not None and old.bound)
        if new is None:
            del pods[uid]
        else:
            pods[uid] = new
            if self.key is None and new.membership is not None and group_label(new.membership.key) == self.label:
                self.key = new.membership.key
        return old


OnPodChange = Callable[[PodGroupEntry, MemberPod | None, MemberPod | None], None]


class PodMembership:
    """Entries of all groups; an entry with neither pods nor a record object is dropped."""

    def __init__(self, on_pod_change: OnPodChange, has_record_object: Callable[[PodGroupKey], bool]) -> None:
        """`on_pod_change(entry, old, new)` is called after the entry was updated, only where old differs from new."""
        self._on_pod_change, self._has_record_object = on_pod_change, has_record_object
        self._entries: dict[_EntryKey, PodGroupEntry] = {}

    def set_pod(self, old: MemberPod | None, new: MemberPod | None) -> None:
        """A member that was `old` is `new` now, as one informer reports it; None: it is not there."""
        if old is not None and (new is None or (_entry_key(old), old.uid) != (_entry_key(new), new.uid)):
            entry = self._entries[_entry_key(old)]
            self._on_pod_change(entry, entry.set_pod(old, None), None)
            self.prune_entry(entry, old.namespace)
        if new is not None:
            at = _entry_key(new)
            entry = self._entries.setdefault(at, PodGroupEntry(at[1]))
            before = entry.set_pod(new, new)
            if before != new:
                self._on_pod_change(entry, before, new)

    def entry(self, key: PodGroupKey) -> PodGroupEntry | None:
        return self._entries.get((key.namespace, group_label(key)))

    def ensure_entry(self, key: PodGroupKey) -> PodGroupEntry:
        """The entry of a group, created if it is missing."""
        at = (key.namespace, group_label(key))
        entry = self._entries.get(at)
        if entry is None:
            entry = self._entries[at] = PodGroupEntry(at[1], key)
        entry.key = key
        return entry

    def prune_entry(self, entry: PodGroupEntry, namespace: str) -> None:
        """Drops an entry without pods and record object."""
        if entry.empty and (entry.key is None or not self._has_record_object(entry.key)):
            self._entries.pop((namespace, entry.label), None)

    def entries(self) -> list[PodGroupEntry]:
        """A copy of the list of entries."""
        return list(self._entries.values())


def _entry_key(member: MemberPod) -> _EntryKey:
    """By its label; of a bound pod without one, by the group that it names."""
    named = group_label(member.membership.key) if member.membership is not None else ""
    return member.namespace, member.group_label or named


def _membership(key: PodGroupKey, member: MemberPod) -> Membership:
    """The declared membership of a pod; one that names another group by now is a member that declares nothing."""
    if member.membership is not None and member.membership.key == key:
        return member.membership
    return Membership(format=_FORMAT[key.flavor], key=key)


def _from_record(group: MergedGroup, record: AdmissionRecord | None) -> MergedGroup:
    """A group with nothing but a record: it gives the minimum, and no source has problems."""
    if record is None:
        return msgspec.structs.replace(group, problems=())
    return msgspec.structs.replace(group, minimum=record.minimum, problems=())
