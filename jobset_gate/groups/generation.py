"""One generation of an opened group: who belongs to it, whose gate may go, how many are bound (G3, G4)."""

from collections.abc import Collection, Sequence
from typing import Final

from jobset_gate.groups.model import Key
from jobset_gate.groups.record import Record, Stage
from jobset_gate.groups.seen import GroupSeen, MemberSeen

CLOCKS_DIFFER: Final = 60.0
"""Seconds by which a moment may lie ahead of ours: one that is later was not written by any of us."""

_ENDED: Final = ("Succeeded", "Failed")


def upcoming(seen: GroupSeen) -> int:
    """The number under which the group is opened next: above all that its record and its pods have had."""
    return 1 + max(seen.generation, max((it.generation for it in seen.members), default=0))


def opened(seen: GroupSeen, generation: int) -> list[MemberSeen]:
    """Members whose gates were removed in it."""
    return [it for it in seen.members if it.generation == generation and not it.gated]


def bound(seen: GroupSeen, generation: int) -> int:
    """Members that have a node. One that has ended counts in its own generation only."""
    return sum(
        it.bound and not it.deleting and (it.generation == generation or it.phase not in _ENDED) for it in seen.members
    )


def waiting(seen: GroupSeen) -> list[MemberSeen]:
    """Members that our gate holds, the oldest first."""
    held = (it for it in seen.members if it.gated and it.alive)
    return sorted(held, key=lambda it: (it.created, it.name))


def passing(seen: GroupSeen, record: Record, under_way: Collection[str] = ()) -> list[MemberSeen]:
    """Whose gate is to go now. `under_way`: UIDs of those that are being seen to.

    Before the minimum was bound only as many as the group was opened with, or than its minimum: a successor finishes
    what was begun, and who takes the place of one that is gone passes, but nobody comes on top. Later all pass.
    """
    if record.stage is not Stage.OPEN:
        return []
    held = waiting(seen)
    if record.satisfied is not None:
        return held
    through = sum(it.alive for it in opened(seen, record.generation))
    held.sort(key=lambda it: it.uid not in under_way)
    return held[: max(0, max(record.many, record.minimum) - through)]


def is_over(seen: GroupSeen, record: Record, *, begun: bool = False) -> bool:
    """All members of this generation are gone: whoever comes now gathers anew. `begun`: some were opened in it.

    A successor does not know that of a group that is not satisfied, but pods made after the decision were not in it.
    """
    if any(it.generation == record.generation for it in seen.members):
        return False
    return begun or record.satisfied is not None or all(it.created > record.newest for it in seen.members)


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
        if read is None or passing(seen, read):
            return None
        latest = max(latest, max((opened_at(it, now) for it in opened(seen, read.generation)), default=0.0))
    return latest


def holder(record: Record, homes: Collection[Key]) -> Key | None:
    """On whose home the decision stands: the first of its gangs, or the next if that one's home is gone."""
    return next((key for key, _ in record.gangs if key in homes), None)
