"""The limit of an admitted group: satisfied, more time, marked, or evicted whole (G4)."""

from fractions import Fraction
from typing import Final

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.model import Flavor, GangMode

FIRST_BACKOFF: Final = 10.0
LONGEST_BACKOFF: Final = 300.0
CLOSE_ENOUGH: Final = Fraction(1, 10)
"""Gap, as a share of the minimum, for which scheduler-plugins' groups get one more limit."""


class DeadlineInput(Value, frozen=True):
    """What of an admitted group decides about its limit."""

    design: Flavor
    mode: GangMode
    minimum: int
    bound: int
    """Members bound in this generation, finished ones included."""
    started_at: float
    """When the last gate was removed."""
    wait: Fraction
    extended: bool = False
    """It has had its second limit."""
    rolled_back: int = 0
    """How often the group was evicted before."""


class Satisfied(Value, frozen=True):
    """The minimum was bound: later members of this generation are ungated at once."""


class KeepWaiting(Value, frozen=True):
    """The limit has not passed."""

    requeue_after: float


class ExtendDeadline(Value, frozen=True):
    """One more limit; recorded, so that there is no third."""

    requeue_after: float


class MarkTimedOut(Value, frozen=True):
    """NonStrict: no pod is evicted, unbound pods are marked."""


class Evict(Value, frozen=True):
    """All admitted pods of the group and its GangGroup, bound or not."""

    retry: bool
    """False for Koordinator's gangs: their pods are marked."""
    backoff_seconds: float
    """Before the group is admitted again."""


def decide_deadline(seen: DeadlineInput, now: float) -> Satisfied | KeepWaiting | ExtendDeadline | MarkTimedOut | Evict:
    """What follows from the limit now."""
    if seen.bound >= seen.minimum:
        return Satisfied()
    wait = float(seen.wait)
    left = seen.started_at + wait * (2 if seen.extended else 1) - now
    if left > 0:
        return KeepWaiting(requeue_after=left)
    if seen.mode is GangMode.NON_STRICT:
        return MarkTimedOut()
    close = (seen.minimum - seen.bound) <= seen.minimum * CLOSE_ENOUGH
    if seen.design is Flavor.SCHEDULER_PLUGINS and close and not seen.extended:
        return ExtendDeadline(requeue_after=max(0.0, left + wait))
    return Evict(retry=seen.design is not Flavor.KOORDINATOR, backoff_seconds=eviction_backoff(seen.rolled_back))


def eviction_backoff(times: int) -> float:
    """10 s, doubling to 5 min with every eviction."""
    return min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(times, 10))
