"""What has become of a pod group, as `wait` and `watch` ask: opened, satisfied, its limit passed, or nothing more."""

from jobset_gate import names
from jobset_gate.cli.verbs.standing import End, Standing
from jobset_gate.groups.record import Stage
from jobset_gate.groups.report import Report

_SATISFIED = frozenset({names.REASON_SATISFIED, names.REASON_RUNNING, names.REASON_FINISHED})


def standing(report: Report | None) -> Standing:
    """None: there is no such group any more. One that was taken back is opened again, Koordinator's gangs excepted."""
    if report is None:
        return Standing(told="is there no more", hopeless=True)
    ends, record = set(), report.record
    if report.reason in _SATISFIED or (record is not None and record.satisfied is not None):
        ends |= {End.OPENED, End.SATISFIED}
    elif record is not None and record.stage is Stage.OPEN:
        ends.add(End.OPENED)
    taken_back = record is not None and (record.stage is Stage.ROLLING_BACK or record.rolled_back > 0)
    if End.SATISFIED not in ends and (taken_back or report.reason == names.REASON_TIMED_OUT):
        ends.add(End.TIMED_OUT)
    given_up = record is not None and record.stage is not Stage.OPEN and not record.retry
    return Standing(frozenset(ends), report.message, hopeless=given_up)
