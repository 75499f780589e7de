"""Which pod of a group counts for what: the one table, and all rules about members go by it (G3, G4).

| a pod that                                  | is present     | is bound          | keeps its generation alive |
|---------------------------------------------|----------------|-------------------|----------------------------|
| is being deleted, or whose owner is gone    | no             | no                | no                         |
| has failed                                  | no             | in its generation | no                         |
| has succeeded                               | in its run     | in its run        | no                         |
| our gate holds                              | yes            | no                | if it was opened with it   |
| has a node                                  | yes            | yes               | if it was opened in it     |
| was opened and has no node                  | yes            | no                | if it was opened in it     |
| has no node, and was never held (Ungated)   | no             | no                | no                         |

A group is *gathered* when its minimum of pods is present, and *satisfied* once its minimum was bound in one generation.

An owner is known to be gone when another of its name has made pods since: the garbage collector may be late.

A *run* is all generations from a gathering to the end, so the one that is open and those before it that were taken
back. A pod that has succeeded is also of the run if its owner (its Job, or the JobSet above) still makes pods for it: a
Job never makes that pod again, so without it the group would not come to its minimum a second time.

A generation is *over* when nobody keeps it alive and somebody is held who does not belong to it, or nobody is left.
Newcomers belong to it

* while a member is alive: the next ReplicaSet of a Deployment, and a group's pods of several controllers. Those of an
  owner that is new to the group wait for JOIN_SECONDS before that: the pods of the last one, deleted in the background
  a moment ago, may not be marked yet.
* afterwards if a pod of the same owner has ended in it: a Job makes another for one that has failed.

All others gather anew: the next Job of a CronJob, and bare pods when those before them have ended.
"""

from collections.abc import Collection, Iterable, Sequence
from enum import Enum, auto
from typing import Final

from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import ControllerRef, GroupSnapshot, MemberPod

MAX_CLOCK_SKEW: Final = 60.0
"""Seconds by which a moment may lie ahead of ours: one that is later was not written by any of us."""

JOIN_SECONDS: Final = 5.0
"""From its creation for which a pod of a new owner is not taken for one of the open generation."""


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
    """The members of a group by their rows, as its record has them."""

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
        """Those that run or are to run."""
        return [it for state in _ACTIVE for it in self[state]]

    @property
    def present(self) -> list[MemberPod]:
        """Those that the minimum asks for, for gathering."""
        return [*self.active, *self.succeeded]

    @property
    def bound(self) -> int:
        """How many of the minimum have a node, or had one."""
        failed = sum(self._is_current(it) for it in self[MemberState.FAILED])
        return len(self[MemberState.PLACED]) + len(self.succeeded) + failed

    @property
    def succeeded(self) -> list[MemberPod]:
        """Those of this run."""
        ended = self[MemberState.SUCCEEDED]
        if not ended:
            return ended
        at_work = self.active
        if not at_work and self._record is None:
            return ended
        owners = {_owner(it) for it in (*at_work, *(it for it in ended if self._is_current(it)))} - {""}
        return [it for it in ended if _owner(it) in owners or self._is_of_run(it)]

    @property
    def living(self) -> list[MemberPod]:
        """Those that keep the open generation alive, be they still held."""
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
        """Held ones in whose owner's name a pod has ended in the open generation."""
        ended = (*self[MemberState.SUCCEEDED], *self[MemberState.FAILED])
        owners = {it.controller.uid for it in ended if it.controller is not None and self._is_current(it)}
        return [it for it in self[MemberState.HELD] if it.controller is not None and it.controller.uid in owners]

    def _is_current(self, member: MemberPod) -> bool:
        record = self._record
        open_ = record is not None and record.stage is not AdmissionState.CLOSED
        return open_ and record is not None and member.generation == record.generation

    def _is_of_run(self, member: MemberPod) -> bool:
        """Whether it was opened in this run; one that is over has none, and one that was taken back goes on."""
        record = self._record
        if record is None or not member.generation:
            return False
        first = record.generation - record.rolled_back + (record.stage is AdmissionState.CLOSED)
        return first <= member.generation <= record.generation


def member_table(seen: GroupSnapshot) -> MemberTable:
    """Its members, by the table."""
    return MemberTable(seen.members, seen.record)


def count_present(members: Iterable[MemberPod], record: AdmissionRecord | None) -> int:
    """How many there are for gathering."""
    return len(MemberTable(members, record).present)


def count_bound(seen: GroupSnapshot) -> int:
    """How many of its minimum have a node, or had one."""
    return member_table(seen).bound


def gated_members(seen: GroupSnapshot) -> list[MemberPod]:
    """Members that our gate holds, the oldest first."""
    return _in_order(member_table(seen)[MemberState.HELD])


def ready_members(seen: GroupSnapshot) -> list[MemberPod]:
    """Those of them that nobody else holds: who opens the group opens these."""
    return [it for it in gated_members(seen) if not it.foreign_gates]


def foreign_gates(seen: GroupSnapshot) -> tuple[str, ...]:
    """Gates of others on members without which the group does not come to its minimum."""
    members = member_table(seen)
    held = [it for it in members[MemberState.HELD] if it.foreign_gates]
    if len(members.present) - len(held) >= (seen.group.minimum or 1):
        return ()
    return tuple(sorted({gate for it in held for gate in it.foreign_gates}))


def opened_members(seen: GroupSnapshot, generation: int) -> list[MemberPod]:
    """Members whose gates were removed in it, whatever has become of them."""
    return [it for it in seen.members if it.generation == generation and not it.gated]


def next_generation(seen: GroupSnapshot) -> int:
    """The number under which the group is opened next: above all that its record and its pods have had."""
    return 1 + max(seen.generation, max((it.generation for it in seen.members), default=0))


# --- While it is open ------------------------------------------------------------------------------------------------


def members_to_ungate(
    seen: GroupSnapshot, record: AdmissionRecord, now: float, under_way: Collection[str] = ()
) -> list[MemberPod]:
    """Whose gate is to go now. `under_way`: UIDs of those that are being seen to.

    Before the minimum was bound only as many as the group was opened with, or as its minimum lacks: a successor
    finishes what was begun, and who takes the place of one that is gone passes, but nobody on top. Later all pass.
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
    """Seconds until the next held pod passes as a later member of a satisfied generation; None: there is none."""
    record = seen.record
    if record is None or record.stage is not AdmissionState.OPEN or record.satisfied is None:
        return None
    return min((wait for _, wait in _joining(seen, record, now) if wait > 0), default=None)


def _joining(seen: GroupSnapshot, record: AdmissionRecord, now: float) -> list[tuple[MemberPod, float]]:
    """Held pods, the oldest first, and seconds until each is taken for one of this generation."""
    held = gated_members(seen)
    known = {_owner(it) for it in seen.members if it.generation == record.generation} if held else set()
    found = []
    for it in held:
        left = it.created + JOIN_SECONDS - now
        joined = it.created <= record.newest or _owner(it) in known or abs(left - JOIN_SECONDS) >= JOIN_SECONDS
        found.append((it, 0.0 if joined else left))
    return found


def is_exhausted(seen: GroupSnapshot, *, begun: bool = False) -> bool:
    """Nobody keeps its generation alive. `begun`: some were opened in it.

    A successor does not know that of a group that is not satisfied, but pods made after the decision were not in it.
    """
    members = member_table(seen)
    living = [it for it in members.living if not (begun and it.gated)]
    return not living and not members.retried


def is_over(parts: Sequence[tuple[GroupSnapshot, bool]]) -> bool:
    """All gangs of a decision, each with whether it was begun: whoever comes now gathers anew."""
    if not all(is_exhausted(seen, begun=begun) for seen, begun in parts):
        return False
    if any(member_table(seen)[MemberState.HELD] for seen, _ in parts):
        return True
    return not any(it.generation == seen.generation for seen, _ in parts for it in seen.members)


def foreign_gated_members(seen: GroupSnapshot) -> list[MemberPod]:
    """Opened members that somebody else's gate holds, as one that has come in the place of another may be."""
    return [it for it in opened_members(seen, seen.generation) if it.foreign_gates and it.alive]


def ungated_at(member: MemberPod, now: float) -> float:
    """When a member's gate was removed; 0 where nobody of us can have written that: users may edit their pods."""
    return min(member.ungated_at, now) if member.ungated_at <= now + MAX_CLOCK_SKEW else 0.0


def deadline_start(members: Sequence[GroupSnapshot], record: AdmissionRecord, now: float) -> float | None:
    """When the last gate of the decision was removed, from where the limit runs; None while one is left."""
    latest = min(record.at, now)
    for seen in members:
        read = seen.record
        if read is None or members_to_ungate(seen, read, now):
            return None
        latest = max(latest, max((ungated_at(it, now) for it in opened_members(seen, read.generation)), default=0.0))
    return latest


def record_holder(record: AdmissionRecord, homes: Collection[PodGroupKey]) -> PodGroupKey | None:
    """On whose home the decision stands: the first of its gangs, or the next if that one's home is gone."""
    return next((key for key, _ in record.gangs if key in homes), None)


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
    """UIDs of owners in whose name another one has made pods since."""
    makers = {it.controller.uid: it.controller for it in members if it.controller is not None}
    if not have_same_name(makers.values()):
        return set()
    last: dict[tuple[str, str, str], tuple[tuple[float, bool, int], str]] = {}
    for it in members:
        if it.controller is not None:
            made = (it.created, it.gated, it.generation), it.controller.uid
            last[_title(it.controller)] = max(last.get(_title(it.controller), made), made)
    return makers.keys() - {uid for _, uid in last.values()}


def have_same_name(makers: Collection[ControllerRef]) -> bool:
    """Whether two of these owners, no two of which are the same, have one name."""
    return len(makers) > 1 and len({_title(it) for it in makers}) < len(makers)


def _title(maker: ControllerRef) -> tuple[str, str, str]:
    return maker.api_version, maker.kind, maker.name


def _uid(member: MemberPod) -> str:
    return "" if member.controller is None else member.controller.uid


def _owner(member: MemberPod) -> str:
    """What makes its pods again, or never again; "" for nobody."""
    return member.jobset or _uid(member)
