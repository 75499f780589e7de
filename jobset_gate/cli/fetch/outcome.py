"""What `wait`, `watch` and `release` wait for, and how far a gang or a pod group has come."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.decide import decide, recorded_verdict
from jobset_gate.barrier.decision import Blocked, Enforce, Ignore
from jobset_gate.barrier.model import GangSnapshot, Verdict, VerdictKind
from jobset_gate.cli.exits import CommandError, ExitCode
from jobset_gate.explain.text import format_duration
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.podgroups.status import GroupStatus


class WaitGoal(StrEnum):
    """What may become of a gang's wait."""

    RELEASED = "released"
    TIMED_OUT = "timedout"
    OPENED = "opened"
    """Of a pod group: its gates were removed."""
    SATISFIED = "satisfied"
    """Of a pod group: its minimum was bound once."""


@dataclass(frozen=True, slots=True)
class WaitOutcome:
    """`reached`: what has come true, empty while it waits. `final`: nothing will come true any more."""

    reached: frozenset[WaitGoal] = frozenset()
    message: str = ""
    final: bool = False
    recreated: bool = False
    """What has timed out is created again, and may be released then."""

    def is_over(self, end: WaitGoal) -> bool:
        """Whether it has come true, or never will. What ends the wait of one start barrier ends it for good."""
        if end in self.reached or self.final:
            return True
        return end in GANG_GOALS and bool(self.reached & GANG_GOALS) and not self.recreated

    def text(self, subject: str, end: WaitGoal) -> str:
        """That it has come true. Raises CommandError where it never will."""
        words = f": {self.message}" if self.message else ""
        if end in self.reached:
            return f"{subject} {GOAL_TEXT[end]}{words}"
        if others := [GOAL_TEXT[it] for it in sorted(self.reached & GANG_GOALS)]:
            raise CommandError(f"{subject} was not {GOAL_TEXT[end]} but {' and '.join(others)}{words}")
        raise CommandError(f"{subject} {self.message}: it will not be {GOAL_TEXT[end]} any more")


def timeout_error(subject: str, end: WaitGoal, seconds: float, why: str) -> CommandError:
    """For a wait that has ended early; `why` is the command that says what it waits for."""
    late = f"{subject} is not {GOAL_TEXT[end]} after {format_duration(seconds)}; `{why}` says what it waits for"
    return CommandError(late, ExitCode.TIMEOUT)


_SATISFIED: Final = frozenset({names.REASON_SATISFIED, names.REASON_RUNNING, names.REASON_FINISHED})
GANG_GOALS: Final = frozenset({WaitGoal.RELEASED, WaitGoal.TIMED_OUT})
"""What becomes of a start barrier."""
GOAL_TEXT: Final = {it: str(it) for it in WaitGoal} | {WaitGoal.TIMED_OUT: "timed out"}


def gang_outcome(seen: GangSnapshot, now: float) -> WaitOutcome:
    """Of the present generation's gate, without looking at pods, unless they are the workload.

    By `decide`, so that the verdict of an older generation is never taken for this one's.
    """
    workload = seen.workload
    if not workload.source.gates_pods:
        seen = GangSnapshot(workload=workload, config_map=seen.config_map)
    match decide(seen, now):
        case Enforce(verdict=verdict):
            return _ended(verdict)
        case Blocked(condition=condition):
            # Templates cannot be changed, so a barrier that is missing stays missing; a foreign ConfigMap may go.
            return WaitOutcome(message=condition.message, final=condition.reason == names.REASON_GATE_MISSING)
        case Ignore():
            return _idle(seen) if workload.source.gates_pods else _quiet(seen)
        case _:
            return WaitOutcome(message="is suspended" if workload.suspended else "")


def _ended(verdict: Verdict) -> WaitOutcome:
    """A gate that a timeout has opened was released, and has timed out; a failed index counts as a timeout (A7)."""
    ends = {WaitGoal.RELEASED if verdict.kind is VerdictKind.RELEASE else WaitGoal.TIMED_OUT}
    if verdict.cause in (names.REASON_TIMED_OUT, names.REASON_INDEX_FAILED):
        ends.add(WaitGoal.TIMED_OUT)
    return WaitOutcome(frozenset(ends), verdict.message)


def _idle(seen: GangSnapshot) -> WaitOutcome:
    """Of a workload that is nothing but its pods. Those that are on their way out may have successors."""
    verdict = recorded_verdict(seen)
    ended = any(not pod.deleting for pod in seen.pods)
    if ended and verdict is not None and verdict.generation.attempt == seen.workload.attempt:
        return _ended(verdict)
    return WaitOutcome(message="has no live pod")


def _quiet(seen: GangSnapshot) -> WaitOutcome:
    workload, verdict = seen.workload, recorded_verdict(seen)
    if workload.managed_elsewhere:
        why = "spec.managedBy names another controller, so its gate is opened elsewhere"
    elif not workload.finished:
        why = "is being deleted"
    elif verdict is not None:
        return _ended(verdict)
    else:
        why = "has finished, and what was decided is not known any more"
    return WaitOutcome(message=why, final=True)


def pod_group_outcome(status: GroupStatus | None) -> WaitOutcome:
    """None: the group is gone. One that was taken back is opened again, Koordinator's gangs excepted."""
    if status is None:
        return WaitOutcome(message="is there no more", final=True)
    ends, record = set(), status.record
    if status.reason in _SATISFIED or (record is not None and record.satisfied is not None):
        ends |= {WaitGoal.OPENED, WaitGoal.SATISFIED}
    elif record is not None and record.stage is AdmissionState.OPEN:
        ends.add(WaitGoal.OPENED)
    taken_back = record is not None and (record.stage is AdmissionState.ROLLING_BACK or record.rolled_back > 0)
    if WaitGoal.SATISFIED not in ends and (taken_back or status.reason == names.REASON_TIMED_OUT):
        ends.add(WaitGoal.TIMED_OUT)
    given_up = record is not None and record.stage is not AdmissionState.OPEN and not record.retry
    return WaitOutcome(frozenset(ends), status.message, final=given_up)
