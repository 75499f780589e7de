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

from jobset_gate.groups.model import Key
from jobset_gate.groups.record import Record, Stage
from jobset_gate.groups.seen import GroupSeen, Maker, MemberSeen

CLOCKS_DIFFER: Final = 60.0
"""Seconds by which a moment may lie ahead of ours: one that is later was not written by any of us."""

JOIN_SECONDS: Final = 5.0
"""From its creation for which a pod of a new owner is not taken for one of the open generation."""


class State(Enum):
    """The rows of the table."""

    GOING = auto()
    FAILED = auto()
    SUCCEEDED = auto()
    HELD = auto()
    PLACED = auto()
    OPENED = auto()
    STRANGE = auto()


_ACTIVE: Final = (State.HELD, State.PLACED, State.OPENED)


class Members:
    """The members of a group by their rows, as its record has them."""

    def __init__(self, members: Iterable[MemberSeen], record: Record | None) -> None:
        self._record = record
        known = list(members)
        gone = _gone(known)
        self._by_state: dict[State, list[MemberSeen]] = {state: [] for state in State}
        for member in known:
            self._by_state[_state(member, gone)].append(member)

    def __getitem__(self, state: State) -> list[MemberSeen]:
        return self._by_state[state]

    @property
    def active(self) -> list[MemberSeen]:
        """Those that run or are to run."""
        return [it for state in _ACTIVE for it in self[state]]

    @property
    def present(self) -> list[MemberSeen]:
        """Those that the minimum asks for, for gathering."""
        return [*self.active, *self.succeeded]

    @property
    def bound(self) -> int:
        """How many of the minimum have a node, or had one."""
        failed = sum(self._is_current(it) for it in self[State.FAILED])
        return len(self[State.PLACED]) + len(self.succeeded) + failed

    @property
    def succeeded(self) -> list[MemberSeen]:
        """Those of this run."""
        ended = self[State.SUCCEEDED]
        if not ended:
            return ended
        at_work = self.active
        if not at_work and self._record is None:
            return ended
        owners = {_owner(it) for it in (*at_work, *(it for it in ended if self._is_current(it)))} - {""}
        return [it for it in ended if _owner(it) in owners or self._is_of_run(it)]

    @property
    def living(self) -> list[MemberSeen]:
        """Those that keep the open generation alive, be they still held."""
        record = self._record
        if record is None:
            return []
        held = [] if record.satisfied is not None else [it for it in self[State.HELD] if it.created <= record.newest]
        opened = (it for state in (State.PLACED, State.OPENED) for it in self[state])
        return [*held, *(it for it in opened if it.generation == record.generation)]

    @property
    def retried(self) -> list[MemberSeen]:
        """Held ones in whose owner's name a pod has ended in the open generation."""
        ended = (*self[State.SUCCEEDED], *self[State.FAILED])
        owners = {it.maker.uid for it in ended if it.maker is not None and self._is_current(it)}
        return [it for it in self[State.HELD] if it.maker is not None and it.maker.uid in owners]

    def _is_current(self, member: MemberSeen) -> bool:
        record = self._record
        open_ = record is not None and record.stage is not Stage.CLOSED
        return open_ and record is not None and member.generation == record.generation

    def _is_of_run(self, member: MemberSeen) -> bool:
        """Whether it was opened in this run; one that is over has none, and one that was taken back goes on."""
        record = self._record
        if record is None or not member.generation:
            return False
        first = record.generation - record.rolled_back + (record.stage is Stage.CLOSED)
        return first <= member.generation <= record.generation


def counted(seen: GroupSeen) -> Members:
    """Its members, by the table."""
    return Members(seen.members, seen.record)


def present(members: Iterable[MemberSeen], record: Record | None) -> int:
    """How many there are for gathering."""
    return len(Members(members, record).present)


def bound(seen: GroupSeen) -> int:
    """How many of its minimum have a node, or had one."""
    return counted(seen).bound


def waiting(seen: GroupSeen) -> list[MemberSeen]:
    """Members that our gate holds, the oldest first."""
    return _in_order(counted(seen)[State.HELD])


def ready(seen: GroupSeen) -> list[MemberSeen]:
    """Those of them that nobody else holds: who opens the group opens these."""
    return [it for it in waiting(seen) if not it.other_gates]


def other_gates(seen: GroupSeen) -> tuple[str, ...]:
    """Gates of others on members without which the group does not come to its minimum."""
    members = counted(seen)
    held = [it for it in members[State.HELD] if it.other_gates]
    if len(members.present) - len(held) >= (seen.group.minimum or 1):
        return ()
    return tuple(sorted({gate for it in held for gate in it.other_gates}))


def opened(seen: GroupSeen, generation: int) -> list[MemberSeen]:
    """Members whose gates were removed in it, whatever has become of them."""
    return [it for it in seen.members if it.generation == generation and not it.gated]


def upcoming(seen: GroupSeen) -> int:
    """The number under which the group is opened next: above all that its record and its pods have had."""
    return 1 + max(seen.generation, max((it.generation for it in seen.members), default=0))


# --- While it is open ------------------------------------------------------------------------------------------------


def passing(seen: GroupSeen, record: Record, now: float, under_way: Collection[str] = ()) -> list[MemberSeen]:
    """Whose gate is to go now. `under_way`: UIDs of those that are being seen to.

    Before the minimum was bound only as many as the group was opened with, or as its minimum lacks: a successor
    finishes what was begun, and who takes the place of one that is gone passes, but nobody on top. Later all pass.
    """
    if record.stage is not Stage.OPEN:
        return []
    if record.satisfied is not None:
        return [it for it, wait in _joining(seen, record, now) if wait <= 0]
    members = counted(seen)
    if not members[State.HELD]:
        return []
    held = _in_order(members[State.HELD])
    held.sort(key=lambda it: (it.uid not in under_way, bool(it.other_gates)))
    there = [it for it in members.present if not it.gated]
    through = sum(it.generation == record.generation for it in there)
    return held[: max(0, record.many - through, record.minimum - len(there))]


def joins_in(seen: GroupSeen, now: float) -> float | None:
    """Seconds until the next held pod passes as a later member of a satisfied generation; None: there is none."""
    record = seen.record
    if record is None or record.stage is not Stage.OPEN or record.satisfied is None:
        return None
    return min((wait for _, wait in _joining(seen, record, now) if wait > 0), default=None)


def _joining(seen: GroupSeen, record: Record, now: float) -> list[tuple[MemberSeen, float]]:
    """Held pods, the oldest first, and seconds until each is taken for one of this generation."""
    held = waiting(seen)
    known = {_owner(it) for it in seen.members if it.generation == record.generation} if held else set()
    found = []
    for it in held:
        left = it.created + JOIN_SECONDS - now
        joined = it.created <= record.newest or _owner(it) in known or abs(left - JOIN_SECONDS) >= JOIN_SECONDS
        found.append((it, 0.0 if joined else left))
    return found


def is_exhausted(seen: GroupSeen, *, begun: bool = False) -> bool:
    """Nobody keeps its generation alive. `begun`: some were opened in it.

    A successor does not know that of a group that is not satisfied, but pods made after the decision were not in it.
    """
    members = counted(seen)
    living = [it for it in members.living if not (begun and it.gated)]
    return not living and not members.retried


def is_over(parts: Sequence[tuple[GroupSeen, bool]]) -> bool:
    """All gangs of a decision, each with whether it was begun: whoever comes now gathers anew."""
    if not all(is_exhausted(seen, begun=begun) for seen, begun in parts):
        return False
    if any(counted(seen)[State.HELD] for seen, _ in parts):
        return True
    return not any(it.generation == seen.generation for seen, _ in parts for it in seen.members)


def under_others(seen: GroupSeen) -> list[MemberSeen]:
    """Opened members that somebody else's gate holds, as one that has come in the place of another may be."""
    return [it for it in opened(seen, seen.generation) if it.other_gates and it.alive]


def opened_at(member: MemberSeen, now: float) -> float:
    """When a member's gate was removed; 0 where nobody of us can have written that: users may edit their pods."""
    return min(member.opened_at, now) if member.opened_at <= now + CLOCKS_DIFFER else 0.0


def begun(members: Sequence[GroupSeen], record: Record, now: float) -> float | None:
    """When the last gate of the decision was removed, from where the limit runs; None while one is left."""
    latest = min(record.at, now)
    for seen in members:
        read = seen.record
        if read is None or passing(seen, read, now):
            return None
        latest = max(latest, max((opened_at(it, now) for it in opened(seen, read.generation)), default=0.0))
    return latest


def holder(record: Record, homes: Collection[Key]) -> Key | None:
    """On whose home the decision stands: the first of its gangs, or the next if that one's home is gone."""
    return next((key for key, _ in record.gangs if key in homes), None)


# --- Rows ------------------------------------------------------------------------------------------------------------


def _in_order(held: Iterable[MemberSeen]) -> list[MemberSeen]:
    return sorted(held, key=lambda it: (it.created, it.name))


def _state(member: MemberSeen, gone: Collection[str]) -> State:
    if member.deleting or (gone and _uid(member) in gone):
        return State.GOING
    if member.phase == "Failed":
        return State.FAILED
    if member.phase == "Succeeded":
        return State.SUCCEEDED
    if member.gated:
        return State.HELD
    if member.node:
        return State.PLACED
    return State.OPENED if member.generation else State.STRANGE


def _gone(members: Sequence[MemberSeen]) -> set[str]:
    """UIDs of owners in whose name another one has made pods since."""
    makers = {it.maker.uid: it.maker for it in members if it.maker is not None}
    if not namesakes(makers.values()):
        return set()
    last: dict[tuple[str, str, str], tuple[tuple[float, bool, int], str]] = {}
    for it in members:
        if it.maker is not None:
            made = (it.created, it.gated, it.generation), it.maker.uid
            last[_title(it.maker)] = max(last.get(_title(it.maker), made), made)
    return makers.keys() - {uid for _, uid in last.values()}


def namesakes(makers: Collection[Maker]) -> bool:
    """Whether two of these owners, no two of which are the same, have one name."""
    return len(makers) > 1 and len({_title(it) for it in makers}) < len(makers)


def _title(maker: Maker) -> tuple[str, str, str]:
    return maker.api_version, maker.kind, maker.name


def _uid(member: MemberSeen) -> str:
    return "" if member.maker is None else member.maker.uid


def _owner(member: MemberSeen) -> str:
    """What makes its pods again, or never again; "" for nobody."""
    return member.jobset or _uid(member)
