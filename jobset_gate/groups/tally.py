"""The members of a group counted: what the phases are decided by and what is shown as BOUND/MINIMUM (G5)."""

from jobset_gate.groups import generation
from jobset_gate.groups.generation import State
from jobset_gate.groups.phases import Counts
from jobset_gate.groups.record import Record, Stage
from jobset_gate.groups.seen import GroupSeen, MemberSeen


def tally(seen: GroupSeen, now: float) -> Counts:
    """The numbers of this generation; of all members where none is open."""
    record = seen.record
    opened = record is not None and record.stage is not Stage.CLOSED
    members = generation.counted(seen)
    bound = members.bound
    minimum = (record.minimum if opened and record is not None else seen.group.minimum) or 0
    return Counts(
        minimum=minimum,
        present=len(members.present),
        bound=bound,
        running=sum(it.phase == "Running" for it in members.active),
        succeeded=len(members.succeeded),
        failed=sum(record is None or _belongs(it, record) for it in members[State.FAILED]),
        opened=opened or 0 < minimum <= bound,  # whoever let them through
        late=opened and record is not None and is_late(seen, record, bound, now),
        returning=record is not None and record.stage is Stage.ROLLING_BACK,
    )


def is_late(seen: GroupSeen, record: Record, bound: int, now: float) -> bool:
    """Whether the wait limit has passed with too few bound."""
    if record.satisfied is not None or bound >= record.minimum:
        return False
    wait = float(record.wait) * (2 if record.extended else 1)
    return record.marked or now >= since(seen, record, now) + wait


def since(seen: GroupSeen, record: Record, now: float) -> float:
    """When the last gate was removed, from where the limit runs; the decision's time before the first was."""
    opened = (generation.opened_at(it, now) for it in seen.members if it.generation == record.generation)
    return max(opened, default=0.0) or min(record.at, now)


def _belongs(member: MemberSeen, record: Record) -> bool:
    """Opened in this generation, or bound without ever having been held (Ungated)."""
    return member.generation == record.generation or member.ungated
