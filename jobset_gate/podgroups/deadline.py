"""The limit of an admitted group: satisfied, more time, marked, or evicted whole (G4)."""

from enum import Enum, auto
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

    flavor: Flavor
    mode: GangMode
    minimum: int
    bound: int
    """Members bound in this generation, finished ones included."""
    started_at: float
    """When the last gate was removed."""
    wait: Fraction
    extended: bool = False
    """It has had its second limit."""


class Verdict(Enum):
    """What follows from the limit."""

    SATISFIED = auto()
    """The minimum was bound: later members of this generation are ungated at once."""
    WAIT = auto()
    """The limit has not passed."""
    EXTEND = auto()
    """One more limit; recorded, so that there is no third."""
    MARK = auto()
    """NonStrict: no pod is evicted, unbound pods are marked."""
    EVICT = auto()
    """All admitted pods of the group and its GangGroup, bound or not."""


def decide_deadline(seen: DeadlineInput, now: float) -> tuple[Verdict, float]:
    """What follows from the limit now, and the seconds that are left of it, or of the next."""
    if seen.bound >= seen.minimum:
        return Verdict.SATISFIED, 0.0
    wait = float(seen.wait)
    left = seen.started_at + wait * (2 if seen.extended else 1) - now
    if left > 0:
        return Verdict.WAIT, left
    if seen.mode is GangMode.NON_STRICT:
        return Verdict.MARK, 0.0
    close = (seen.minimum - seen.bound) <= seen.minimum * CLOSE_ENOUGH
    if seen.flavor is Flavor.SCHEDULER_PLUGINS and close and not seen.extended:
        return Verdict.EXTEND, max(0.0, left + wait)
    return Verdict.EVICT, 0.0


def eviction_backoff(times: int) -> float:
    """10 s, doubling to 5 min with every eviction."""
    return min(LONGEST_BACKOFF, FIRST_BACKOFF * 2.0 ** min(times, 10))
