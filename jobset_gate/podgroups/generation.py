"""Which pod of a group counts for what: one table, which every rule about members uses (G3, G4).

| a pod that                                  | is present     | is bound          | keeps its generation alive |
|---------------------------------------------|----------------|-------------------|----------------------------|
| is being deleted, or whose owner is gone    | no             | no                | no                         |
| has failed                                  | no             | in its generation | no                         |
| has succeeded                               | in its run     | in its run        | no                         |
| our gate holds                              | yes            | no                | if it was opened with it   |
| has a node                                  | yes            | yes               | if it was opened in it     |
| was opened and has no node                  | yes            | no                | if it was opened in it     |
| has no node, and was never held (Ungated)   | no             | no                | no                         |

A group is *gathered* when its minimum of pods is present, *satisfied* once its minimum was bound in one generation.

An owner is known to be gone once another of its name has created pods, since the garbage collector may be late.

A *run* is all generations from a gathering to the end: the current one, and those before it that were evicted. A
succeeded pod is also of the run if its owner (its Job, or the JobSet above) still creates pods: a Job never creates
that pod again, so without it the group would not reach its minimum a second time.

A generation is *over* when no pod keeps it alive, and a pod is held that does not belong to it, or no pod is left.
New pods belong to it

* while a member is alive: the next ReplicaSet of a Deployment, and pods of several controllers. Pods of an owner new
  to the group wait for JOIN_SECONDS first: the previous pods may be about to be marked for deletion.
* afterwards if a pod of the same owner has ended in it: a Job creates another for a failed one.

All others gather again: the next Job of a CronJob, and bare pods after others have ended.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import Enum, auto
from typing import Final

from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import ControllerRef, GroupSnapshot, MemberPod

MAX_CLOCK_SKEW: Final = 60.0
"""Seconds: a later time was not written by this controller."""

JOIN_SECONDS: Final = 5.0
"""After its creation, for which a pod of a new owner does not belong to the open generation."""


class MemberState(Enum):
    """The rows of the table."""

    GOING = auto()
    FAILED = auto()
    SUCCEEDED = auto()
    HELD = auto()
    PLACED = auto()
    OPENED = auto()
    STRANGE = auto()


_ACTIVE: Final = (MemberState.HELD, MemberState.PLACED, MemberState.OPENED)


class MemberTable:
    """The members of a group by row."""

    def __init__(self, members: Iterable[MemberPod], record: AdmissionRecord | None) -> None:
        self._record = record
        known = list(members)
        gone = _gone_owners(known)
        self._by_state: dict[MemberState, list[MemberPod]] = {state: [] for state in MemberState}
        for member in known:
            self._by_state[_state(member, gone)].append(member)

    def __getitem__(self, state: MemberState) -> list[MemberPod]:
        return self._by_state[state]

    @property
    def active(self) -> list[MemberPod]:
        """Members that run or may run."""
        return [it for state in _ACTIVE for it in self[state]]

    @property
    def present(self) -> list[MemberPod]:
        """Members that count for gathering."""
        return [*self.active, *self.succeeded]

    @property
    def bound(self) -> int:
        """Members that have a node, or had one."""
        failed = sum(self._is_current(it) for it in self[MemberState.FAILED])
        return len(self[MemberState.PLACED]) + len(self.succeeded) + failed

    @property
    def succeeded(self) -> list[MemberPod]:
        ended = self[MemberState.SUCCEEDED]
        if not ended:
            return ended
        active = self.active
        if not active and self._record is None:
            return ended
        owners = {_owner(it) for it in (*active, *(it for it in ended if self._is_current(it)))} - {""}
        return [it for it in ended if _owner(it) in owners or self._is_of_run(it)]

    @property
    def living(self) -> list[MemberPod]:
        """Members that keep the open generation alive, gated ones too."""
        record = self._record
        if record is None:
            return []
        held = (
            [] if record.satisfied is not None else [it for it in self[MemberState.HELD] if it.created <= record.newest]
        )
        opened = (it for state in (MemberState.PLACED, MemberState.OPENED) for it in self[state])
        return [*held, *(it for it in opened if it.generation == record.generation)]

    @property
    def retried(self) -> list[MemberPod]:
        """Gated members with an owner that had a pod end in the open generation."""
        ended = (*self[MemberState.SUCCEEDED], *self[MemberState.FAILED])
        owners = {it.controller.uid for it in ended if it.controller is not None and self._is_current(it)}
        return [it for it in self[MemberState.HELD] if it.controller is not None and it.controller.uid in owners]

    def _is_current(self, member: MemberPod) -> bool:
        record = self._record
        open_ = record is not None and record.stage is not AdmissionState.CLOSED
        return open_ and record is not None and member.generation == record.generation

    def _is_of_run(self, member: MemberPod) -> bool:
        """Whether it was admitted in this run; an eviction does not end a run."""
        record = self._record
        if record is None or not member.generation:
            return False
        first = record.generation - record.rolled_back + (record.stage is AdmissionState.CLOSED)
        return first <= member.generation <= record.generation


def member_table(seen: GroupSnapshot) -> MemberTable:
    return MemberTable(seen.members, seen.record)


def count_bound(seen: GroupSnapshot) -> int:
    """How many of its minimum have a node, or had one."""
    return member_table(seen).bound


def gated_members(seen: GroupSnapshot) -> list[MemberPod]:
    """Members with our gate, the oldest first."""
    return _in_order(member_table(seen)[MemberState.HELD])


def ready_members(seen: GroupSnapshot) -> list[MemberPod]:
    """Those of them without gates of others: they are ungated at admission."""
    return [it for it in gated_members(seen) if not it.foreign_gates]


def foreign_gates(seen: GroupSnapshot) -> tuple[str, ...]:
    """Gates of others on members that the group needs for its minimum."""
    members = member_table(seen)
    held = [it for it in members[MemberState.HELD] if it.foreign_gates]
    if len(members.present) - len(held) >= (seen.group.minimum or 1):
        return ()
    return tuple(sorted({gate for it in held for gate in it.foreign_gates}))


def opened_members(seen: GroupSnapshot, generation: int) -> list[MemberPod]:
    """Members whose gates were removed in it, in any state."""
    return [it for it in seen.members if it.generation == generation and not it.gated]


def next_generation(seen: GroupSnapshot) -> int:
    """The number of the next generation: above those of its record and its pods."""
    return 1 + max(seen.generation, max((it.generation for it in seen.members), default=0))


# --- While it is admitted --------------------------------------------------------------------------------------------


def members_to_ungate(
    seen: GroupSnapshot, record: AdmissionRecord, now: float, under_way: Collection[str] = ()
) -> list[MemberPod]:
    """Members whose gate is to be removed now. `under_way`: UIDs of pods that are being ungated.

    Before the minimum is bound, as many as at admission, or as the minimum lacks: another leader finishes a decision,
    and a pod that replaces another is ungated, but no more. Afterwards all are.
    """
    if record.stage is not AdmissionState.OPEN:
        return []
    if record.satisfied is not None:
        return [it for it, wait in _joining(seen, record, now) if wait <= 0]
    members = member_table(seen)
    if not members[MemberState.HELD]:
        return []
    held = _in_order(members[MemberState.HELD])
    held.sort(key=lambda it: (it.uid not in under_way, bool(it.foreign_gates)))
    there = [it for it in members.present if not it.gated]
    through = sum(it.generation == record.generation for it in there)
    return held[: max(0, record.many - through, record.minimum - len(there))]


def seconds_until_join(seen: GroupSnapshot, now: float) -> float | None:
    """Seconds until the next gated pod joins a satisfied generation; None: there is none."""
    record = seen.record
    if record is None or record.stage is not AdmissionState.OPEN or record.satisfied is None:
        return None
    return min((wait for _, wait in _joining(seen, record, now) if wait > 0), default=None)


def _joining(seen: GroupSnapshot, record: AdmissionRecord, now: float) -> list[tuple[MemberPod, float]]:
    """Gated pods, the oldest first, and seconds until each belongs to this generation."""
    held = gated_members(seen)
    known = {_owner(it) for it in seen.members if it.generation == record.generation} if held else set()
    found = []
    for it in held:
        left = it.created + JOIN_SECONDS - now
        joined = it.created <= record.newest or _owner(it) in known or abs(left - JOIN_SECONDS) >= JOIN_SECONDS
        found.append((it, 0.0 if joined else left))
    return found


def is_exhausted(seen: GroupSnapshot, *, begun: bool = False) -> bool:
    """Whether no pod keeps its generation alive. `begun`: pods were ungated in it, which another leader does not know
    of a group that is not satisfied; pods created after the decision do not belong to it in any case.
    """
    members = member_table(seen)
    living = [it for it in members.living if not (begun and it.gated)]
    return not living and not members.retried


def is_over(parts: Sequence[tuple[GroupSnapshot, bool]]) -> bool:
    """Whether the generation of all gangs of a decision is over, each with `begun`: later pods gather again."""
    if not all(is_exhausted(seen, begun=begun) for seen, begun in parts):
        return False
    if any(member_table(seen)[MemberState.HELD] for seen, _ in parts):
        return True
    return not any(it.generation == seen.generation for seen, _ in parts for it in seen.members)


def foreign_gated_members(seen: GroupSnapshot) -> list[MemberPod]:
    """Ungated members with a gate of others, as a pod that replaces another may have."""
    return [it for it in opened_members(seen, seen.generation) if it.foreign_gates and it.alive]


def ungated_at(member: MemberPod, now: float) -> float:
    """When a member's gate was removed; 0 if this controller cannot have written it: users can edit their pods."""
    return min(member.ungated_at, now) if member.ungated_at <= now + MAX_CLOCK_SKEW else 0.0


def deadline_start(members: Sequence[GroupSnapshot], record: AdmissionRecord, now: float) -> float | None:
    """When the last gate of the decision was removed, from where the limit runs; None while a gate is left."""
    latest = min(record.at, now)
    for seen in members:
        read = seen.record
        if read is None or members_to_ungate(seen, read, now):
            return None
        latest = max(latest, max((ungated_at(it, now) for it in opened_members(seen, read.generation)), default=0.0))
    return latest


def record_holder(record: AdmissionRecord, stored: Collection[PodGroupKey]) -> PodGroupKey | None:
    """The gang that the decision is stored with: the first whose object exists."""
    return next((key for key, _ in record.gangs if key in stored), None)


# --- Rows ------------------------------------------------------------------------------------------------------------


def _in_order(held: Iterable[MemberPod]) -> list[MemberPod]:
    return sorted(held, key=lambda it: (it.created, it.name))


def _state(member: MemberPod, gone: Collection[str]) -> MemberState:
    if member.deleting or (gone and _uid(member) in gone):
        return MemberState.GOING
    if member.phase == "Failed":
        return MemberState.FAILED
    if member.phase == "Succeeded":
        return MemberState.SUCCEEDED
    if member.gated:
        return MemberState.HELD
    if member.node:
        return MemberState.PLACED
    return MemberState.OPENED if member.generation else MemberState.STRANGE


def _gone_owners(members: Sequence[MemberPod]) -> set[str]:
    """UIDs of owners whose name another owner has created pods with since."""
    makers = {it.controller.uid: it.controller for it in members if it.controller is not None}
    if len({_title(it) for it in makers.values()}) == len(makers):
        return set()
    last: dict[tuple[str, str, str], tuple[tuple[float, bool, int], str]] = {}
    for it in members:
        if it.controller is not None:
            made = (it.created, it.gated, it.generation), it.controller.uid
            last[_title(it.controller)] = max(last.get(_title(it.controller), made), made)
    return makers.keys() - {uid for _, uid in last.values()}


def _title(maker: ControllerRef) -> tuple[str, str, str]:
    return maker.api_version, maker.kind, maker.name


def _uid(member: MemberPod) -> str:
    return "" if member.controller is None else member.controller.uid


def _owner(member: MemberPod) -> str:
    """The owner that may create its pods again; "": none."""
    return member.jobset or _uid(member)
