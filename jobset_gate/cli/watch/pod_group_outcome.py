"""What has become of a pod group, as `wait` and `watch` ask: opened, satisfied, its limit passed, or nothing more."""

from jobset_gate import names
from jobset_gate.cli.watch.outcome import WaitGoal, WaitOutcome
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.podgroups.status import GroupStatus

_SATISFIED = frozenset({names.REASON_SATISFIED, names.REASON_RUNNING, names.REASON_FINISHED})


def pod_group_outcome(report: GroupStatus | None) -> WaitOutcome:
    """None: there is no such group any more. One that was taken back is opened again, Koordinator's gangs excepted."""
    if report is None:
        return WaitOutcome(message="is there no more", final=True)
    ends, record = set(), report.record
    if report.reason in _SATISFIED or (record is not None and record.satisfied is not None):
        ends |= {WaitGoal.OPENED, WaitGoal.SATISFIED}
    elif record is not None and record.stage is AdmissionState.OPEN:
        ends.add(WaitGoal.OPENED)
    taken_back = record is not None and (record.stage is AdmissionState.ROLLING_BACK or record.rolled_back > 0)
    if WaitGoal.SATISFIED not in ends and (taken_back or report.reason == names.REASON_TIMED_OUT):
        ends.add(WaitGoal.TIMED_OUT)
    given_up = record is not None and record.stage is not AdmissionState.OPEN and not record.retry
    return WaitOutcome(frozenset(ends), report.message, final=given_up)
