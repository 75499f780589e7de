"""Whether the gate of a JobSet's present generation is open: from the JobSet and its ConfigMap, without its pods.

Decided by `decide`, so that an older generation's verdict is never taken for this one's.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jobset_gate import names, report
from jobset_gate.decide import decide
from jobset_gate.model import GangSeen, GateSeen, JobSetSeen, Kind, Quiet, Report, Stand, Verdict


class End(StrEnum):
    """What may become of a gang's wait."""

    RELEASED = "released"
    TIMED_OUT = "timedout"
    OPENED = "opened"
    """Of a pod group: its gates were removed."""
    SATISFIED = "satisfied"
    """Of a pod group: its minimum was bound once."""


@dataclass(frozen=True, slots=True)
class Standing:
    """`ends`: what has come true, empty while it waits. `hopeless`: nothing will come true any more."""

    ends: frozenset[End] = frozenset()
    told: str = ""
    hopeless: bool = False

    def is_over(self, end: End) -> bool:
        """Whether it has come true, or never will. What ends a JobSet's wait ends it for good."""
        return end in self.ends or self.hopeless or (end in GATES and bool(self.ends & GATES))


GATES: Final = frozenset({End.RELEASED, End.TIMED_OUT})
"""What becomes of a JobSet's gate."""
IN_WORDS: Final = {
    End.RELEASED: "released",
    End.TIMED_OUT: "timed out",
    End.OPENED: "opened",
    End.SATISFIED: "satisfied",
}


def standing(jobset: JobSetSeen, gate: GateSeen | None, now: float) -> Standing:
    """Where it stands."""
    match decide(GangSeen(jobset=jobset, gate=gate), now):
        case Stand(verdict=verdict):
            return _ended(verdict)
        case Report(condition=condition):
            # Templates cannot be changed, so a barrier that is missing stays missing; a foreign ConfigMap may go.
            return Standing(told=condition.message, hopeless=condition.reason == names.REASON_GATE_MISSING)
        case Quiet():
            return _quiet(jobset, gate)
        case _:
            return Standing(told="is suspended" if jobset.suspended else "")


def _ended(verdict: Verdict) -> Standing:
    """A gate that a timeout has opened was released, and has timed out."""
    ends = {End.RELEASED if verdict.kind is Kind.RELEASE else End.TIMED_OUT}
    if verdict.cause == names.REASON_TIMED_OUT:
        ends.add(End.TIMED_OUT)
    return Standing(frozenset(ends), verdict.message)


def _quiet(jobset: JobSetSeen, gate: GateSeen | None) -> Standing:
    if jobset.managed_elsewhere:
        return Standing(told="spec.managedBy names another controller, so its gate is opened elsewhere", hopeless=True)
    if jobset.finished:
        for verdict in (gate.verdict if gate is not None else None, report.decision_in(jobset.condition, jobset.uid)):
            if verdict is not None and verdict.generation.uid == jobset.uid:
                return _ended(verdict)
        return Standing(told="has finished, and what was decided is not known any more", hopeless=True)
    return Standing(told="is being deleted", hopeless=True)
