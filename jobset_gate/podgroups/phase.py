"""Counts of a group's members, and the phase that follows from them, as in scheduler-plugins' design (G5)."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.generation import MemberState
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot


class Phase(StrEnum):
    """The phases of a PodGroup's status."""

    PENDING = "Pending"
    """Not admitted, or evicted, or admitted and no member bound."""
    SCHEDULING = "Scheduling"
    """Admitted, and some members or the whole minimum are bound."""
    RUNNING = "Running"
    """The minimum runs or has succeeded."""
    UNKNOWN = "Unknown"
    """Some members are bound, and the group is being evicted or has missed its limit."""
    FINISHED = "Finished"
    """All pods have succeeded, at least the minimum."""
    FAILED = "Failed"
    """Pods have failed, and fewer than the minimum run or have succeeded."""


class MemberCounts(Value, frozen=True):
    minimum: int
    present: int
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    opened: bool = False
    """Admitted, or its minimum is bound without admission."""
    deadline_passed: bool = False
    evicting: bool = False


def group_phase(counts: MemberCounts) -> Phase:
    """The first phase whose condition holds."""
    return next(phase for phase, holds in _TABLE if holds(counts))


_TABLE: Final[tuple[tuple[Phase, Callable[[MemberCounts], bool]], ...]] = (
    (Phase.UNKNOWN, lambda it: it.evicting and it.bound > 0),
    (Phase.PENDING, lambda it: not it.opened or it.evicting),
    (Phase.FINISHED, lambda it: it.succeeded >= it.minimum and it.succeeded >= it.present),
    (Phase.RUNNING, lambda it: it.running + it.succeeded >= it.minimum),  # also if a failed pod was replaced
    (Phase.FAILED, lambda it: it.failed > 0),
    (Phase.SCHEDULING, lambda it: it.bound >= it.minimum),
    (Phase.UNKNOWN, lambda it: it.deadline_passed and it.bound > 0),
    (Phase.SCHEDULING, lambda it: it.bound > 0),
    (Phase.PENDING, lambda _: True),  # admitted, and no member bound
)


def count_members(seen: GroupSnapshot, now: float) -> MemberCounts:
    """Of this generation; of all members if none is open."""
    record = seen.record
    opened = record is not None and record.stage is not AdmissionState.CLOSED
    members = generation.member_table(seen)
    bound = members.bound
    minimum = (record.minimum if opened and record is not None else seen.group.minimum) or 0
    failed = members[MemberState.FAILED]
    return MemberCounts(
        minimum=minimum,
        present=len(members.present),
        bound=bound,
        running=sum(it.phase == "Running" for it in members.active),
        succeeded=len(members.succeeded),
        failed=sum(record is None or it.generation == record.generation or it.ungated for it in failed),
        opened=opened or 0 < minimum <= bound,
        deadline_passed=opened and record is not None and _deadline_passed(seen, record, bound, now),
        evicting=record is not None and record.stage is AdmissionState.ROLLING_BACK,
    )


def _deadline_passed(seen: GroupSnapshot, record: AdmissionRecord, bound: int, now: float) -> bool:
    if record.satisfied is not None or bound >= record.minimum:
        return False
    wait = float(record.wait) * (2 if record.extended else 1)
    return record.marked or now >= last_ungated_at(seen, record, now) + wait


def last_ungated_at(seen: GroupSnapshot, record: AdmissionRecord, now: float) -> float:
    """When the last gate was removed, from where the limit runs; before the first, when it was admitted."""
    ungated = (generation.ungated_at(it, now) for it in seen.members if it.generation == record.generation)
    return max(ungated, default=0.0) or min(record.at, now)
