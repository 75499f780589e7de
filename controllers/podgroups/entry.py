"""One group as it is put together: its pods, and the gang that they and its PodGroup come to, kept until it changes."""

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from typing import Final

import msgspec

from jobset_gate.podgroups import generation, merge
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.model import FLAVOR_OF, Format, Membership, MemberSource, MergedGroup, PodGroupKey
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import ControllerRef, MemberPod, RecordObject

_WAY: Final = {design: next(way for way in Format if FLAVOR_OF[way] is design) for design in FLAVOR_OF.values()}


class PodGroupEntry:
    """What is known of one group."""

    def __init__(self, label: str, key: PodGroupKey | None = None) -> None:
        """`key` is None as long as nobody who carries the label says which group that is."""
        self.label, self.key = label, key
        self.group: MergedGroup | None = None
        """As it was merged last; None: to be merged anew."""
        self.gangs: tuple[str, ...] = ()
        """Those of its GangGroup, as it was merged last."""
        self.record: AdmissionRecord | None = None
        self.record_is_current = False
        """Whether `record` is what its homes tell by now."""
        self.announced = False
        """Whether anybody was told of it when it was a group, or may have been."""
        self.bound_count = 0
        """How many of its pods have a node, whatever else is the matter with them."""
        self._held: dict[str, MemberPod] = {}
        """By UID: those that carry its label."""
        self._ungated: dict[str, MemberPod] = {}
        """By UID: those that are bound and only name it."""
        self._said: Counter[Membership | None] = Counter()
        """How many say what."""
        self._makers: Counter[ControllerRef] = Counter()
        """How many were made by whom."""
        self._ended = 0
        """How many have succeeded."""
        self._in_order = True
        """Those that are held are kept by name; only one that comes disturbs that."""
        self._members: tuple[MemberPod, ...] | None = None

    @property
    def members(self) -> tuple[MemberPod, ...]:
        """All of them, by name."""
        if self._members is None:
            if not self._in_order:
                self._held, self._in_order = _by_name(self._held), True
            both = _by_name({**self._ungated, **self._held}) if self._ungated else self._held
            self._members = tuple(both.values())
        return self._members

    @property
    def empty(self) -> bool:
        """No pod is left."""
        return not self._held and not self._ungated

    def __len__(self) -> int:
        return len(self._held) + len(self._ungated)

    def put_pod(self, member: MemberPod) -> MemberPod | None:
        """A pod as it is now; gives what it was."""
        return self._set(self._held if member.group_label else self._ungated, member.uid, member)

    def drop_pod(self, uid: str, *, held: bool) -> MemberPod | None:
        """A pod is gone; gives what it was."""
        return self._set(self._held if held else self._ungated, uid, None)

    def present_count(self, record: AdmissionRecord | None) -> int | None:
        """How many there are for gathering, where that is another number than of those that may count at all."""
        if not self._ended and not generation.have_same_name(self._makers):
            return None
        return generation.count_present(self.members, record)

    def merged_group(self, key: PodGroupKey, homes: Sequence[RecordObject], default_wait: Fraction) -> MergedGroup:
        """The gang that pods and PodGroups come to. A record that nobody can read holds it: who knows what it said?"""
        if self.group is None:
            said = [MemberSource(pod=it.name, membership=_claim(key, it), alive=it.is_counted) for it in self.members]
            pod_groups = [it.pod_group for it in homes if it.pod_group is not None]
            group = merge.merge_group(key, said, pod_groups, default_wait=default_wait)
            if not said and not pod_groups:
                group = _remembered(group, next((it.record for it in homes if it.record is not None), None))
            unread = tuple(it.problem for it in homes if it.problem is not None)
            self.group = msgspec.structs.replace(group, problems=(*group.problems, *unread)) if unread else group
            self.gangs = group.gangs
        return self.group

    def _set(self, pods: dict[str, MemberPod], uid: str, new: MemberPod | None) -> MemberPod | None:
        old = pods.get(uid)
        if old == new:
            return old
        self._members = None
        self.bound_count += (new is not None and new.bound) - (old is not None and old.bound)
        if new is None:
            del pods[uid]
        else:
            pods[uid] = new
            self._in_order = self._in_order and old is not None
            if self.key is None and new.membership is not None and group_label(new.membership.key) == self.label:
                self.key = new.membership.key
        if old is not None:
            self._made(old, -1)
        if new is not None:
            self._made(new, 1)
        if self.group is not None:
            # A pod that is here both ways for a moment is one.
            plain = pods is self._held and not self._ungated
            self.group = self._recounted(self.group, old, new) if plain else None
        if old is not None:
            self._say(old.membership, -1)
        if new is not None:
            self._say(new.membership, 1)
        return old

    def _made(self, member: MemberPod, more: int) -> None:
        self._ended += more * (member.phase == "Succeeded")
        if member.controller is not None:
            self._makers[member.controller] += more
            if not self._makers[member.controller]:
                del self._makers[member.controller]

    def _say(self, claim: Membership | None, more: int) -> None:
        self._said[claim] += more
        if not self._said[claim]:
            del self._said[claim]

    def _recounted(self, group: MergedGroup, old: MemberPod | None, new: MemberPod | None) -> MergedGroup | None:
        """The group with one pod more or less, if that is all; None if it has to be merged anew.

        A thousand pods that come one after the other must not be merged a thousand times.
        """
        if old is not None and new is not None and (old.membership, old.is_counted) == (new.membership, new.is_counted):
            return group
        same = old is not None and new is not None and old.membership == new.membership
        known = new is None or self._said[new.membership] > 0
        stays = old is None or self._said[old.membership] > 1
        if not group.valid or not (same or (known and stays)):
            return None
        more = (new is not None and new.is_counted) - (old is not None and old.is_counted)
        return msgspec.structs.replace(group, present=group.present + more)


def _by_name(pods: dict[str, MemberPod]) -> dict[str, MemberPod]:
    return dict(sorted(pods.items(), key=lambda it: (it[1].name, it[0])))


def _claim(key: PodGroupKey, member: MemberPod) -> Membership:
    """What a pod says; one that names another group by now has nothing to say here, and is still a member."""
    if member.membership is not None and member.membership.key == key:
        return member.membership
    return Membership(format=_WAY[key.design], key=key)


def _remembered(group: MergedGroup, record: AdmissionRecord | None) -> MergedGroup:
    """A group of which only what was decided is left: there is nobody who could say its minimum, or be blamed."""
    if record is None:
        return msgspec.structs.replace(group, problems=())
    return msgspec.structs.replace(group, minimum=record.minimum, total=record.minimum, problems=())
