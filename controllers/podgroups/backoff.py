"""Decisions that could not be written: their groups are left out of the choice for a while, longer each time (G3).

Meanwhile they hold neither room nor the one doubtful place of their domain, or one object that takes no record would
hold up everybody else.
"""

from dataclasses import dataclass
from typing import Final

from jobset_gate import names
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.runtime.clock import monotonic

FIRST: Final = 1.0
LONGEST: Final = 60.0
"""Seconds between two tries."""

FORGOTTEN: Final = 600.0
"""Seconds after which nobody remembers that there was one."""


TOLERATED_CONFLICTS: Final = 5
"""Times that somebody else may have been faster, which is no trouble, before that counts as one."""


@dataclass(slots=True)
class _Setback:
    tries: int
    pause: float
    until: float
    why: str


class AdmissionBackoff:
    """By the first gang of each decision."""

    def __init__(self) -> None:
        self._known: dict[PodGroupKey, _Setback] = {}

    def note(self, key: PodGroupKey, why: str, *, excused: int = 0) -> float:
        """Once more it was not written; gives the seconds until it may be tried again: none, the first few times."""
        now = monotonic()
        self._known = {each: it for each, it in self._known.items() if now < it.until + FORGOTTEN}
        tries = self._known[key].tries if key in self._known else 0
        pause = 0.0 if tries < excused else min(LONGEST, FIRST * 2.0 ** min(tries - excused, 10))
        self._known[key] = _Setback(tries=tries + 1, pause=pause, until=now + pause, why=why)
        return pause

    def forget(self, key: PodGroupKey) -> None:
        """It was written."""
        self._known.pop(key, None)

    def holds(self, key: PodGroupKey) -> bool:
        """Whether it is too early to try again."""
        known = self._known.get(key)
        return known is not None and monotonic() < known.until

    def told(self, key: PodGroupKey) -> GroupReason | None:
        """What is said of it; the first time may be an accident, and passes without a word."""
        known = self._known.get(key)
        if known is None or known.pause <= FIRST:
            return None
        return GroupReason(
            reason=names.REASON_NOT_RECORDED, message=f"could be opened, but that cannot be recorded: {known.why}"
        )
