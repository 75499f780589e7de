"""The members of a group counted: what the phases are decided by and what is shown as BOUND/MINIMUM (G5)."""

from jobset_gate.podgroups import generation
from jobset_gate.podgroups.generation import MemberState
from jobset_gate.podgroups.phase import MemberCounts
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod


def count_members(seen: GroupSnapshot, now: float) -> MemberCounts:
    """The numbers of this generation; of all members where none is open."""
    record = seen.record
    opened = record is not None and record.stage is not AdmissionState.CLOSED
    members = generation.member_table(seen)
    bound = members.bound
    minimum = (record.minimum if opened and record is not None else seen.group.minimum) or 0
    return MemberCounts(
        minimum=minimum,
        present=len(members.present),
        bound=bound,
        running=sum(it.phase == "Running" for it in members.active),
        succeeded=len(members.succeeded),
        failed=sum(record is None or _belongs(it, record) for it in members[MemberState.FAILED]),
        opened=opened or 0 < minimum <= bound,  # whoever let them through
        deadline_passed=opened and record is not None and deadline_passed(seen, record, bound, now),
        evicting=record is not None and record.stage is AdmissionState.ROLLING_BACK,
    )


def deadline_passed(seen: GroupSnapshot, record: AdmissionRecord, bound: int, now: float) -> bool:
    """Whether the wait limit has passed with too few bound."""
    if record.satisfied is not None or bound >= record.minimum:
        return False
    wait = float(record.wait) * (2 if record.extended else 1)
    return record.marked or now >= last_ungated_at(seen, record, now) + wait


def last_ungated_at(seen: GroupSnapshot, record: AdmissionRecord, now: float) -> float:
    """When the last gate was removed, from where the limit runs; the decision's time before the first was."""
    opened = (generation.ungated_at(it, now) for it in seen.members if it.generation == record.generation)
    return max(opened, default=0.0) or min(record.at, now)


def _belongs(member: MemberPod, record: AdmissionRecord) -> bool:
    """Opened in this generation, or bound without ever having been held (Ungated)."""
    return member.generation == record.generation or member.ungated
