"""Facts of a group to the phase that its status shows, after the diagram of scheduler-plugins (G5)."""

from collections.abc import Callable
from enum import StrEnum
from typing import Final

from jobset_gate.barrier.model import Value


class Phase(StrEnum):
    """The phases of the design."""

    PENDING = "Pending"
    """Not opened, or taken back, or opened and nobody has found a place yet."""
    SCHEDULING = "Scheduling"
    """Opened, and some or all of its minimum are bound."""
    RUNNING = "Running"
    """Its minimum runs or has succeeded."""
    UNKNOWN = "Unknown"
    """Some are bound, and it is being taken back or has missed its limit."""
    FINISHED = "Finished"
    """All pods have succeeded, the minimum at least."""
    FAILED = "Failed"
    """Pods have failed, and fewer than the minimum run or have succeeded."""


class MemberCounts(Value, frozen=True):
    """The members of one generation of a group."""

    minimum: int
    present: int
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    opened: bool = False
    """Or its minimum is bound, past us."""
    deadline_passed: bool = False
    """The wait limit has passed with too few bound."""
    evicting: bool = False
    """It is being taken back."""


def group_phase(seen: MemberCounts) -> Phase:
    """The first phase whose facts hold."""
    return next(phase for phase, holds in _TABLE if holds(seen))


_TABLE: Final[tuple[tuple[Phase, Callable[[MemberCounts], bool]], ...]] = (
    (Phase.UNKNOWN, lambda it: it.evicting and it.bound > 0),  # whatever still runs will not for long
    (Phase.PENDING, lambda it: not it.opened or it.evicting),  # not yet, or no more: a roll-back leads here
    (Phase.FINISHED, lambda it: it.succeeded >= it.minimum and it.succeeded >= it.present),
    (Phase.RUNNING, lambda it: it.running + it.succeeded >= it.minimum),  # also when a failed pod was made up for
    (Phase.FAILED, lambda it: it.failed > 0),
    (Phase.SCHEDULING, lambda it: it.bound >= it.minimum),
    (Phase.UNKNOWN, lambda it: it.deadline_passed and it.bound > 0),
    (Phase.SCHEDULING, lambda it: it.bound > 0),
    (Phase.PENDING, lambda _: True),  # opened, and nobody has found a place
)
