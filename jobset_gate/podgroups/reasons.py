"""The one reason that is told of a group, and its text: by its record and members, else by what holds it up (G5)."""

from collections.abc import Sequence
from datetime import UTC, datetime

from jobset_gate import names
from jobset_gate.explain import text as said
from jobset_gate.podgroups import generation
from jobset_gate.podgroups import phase as phases
from jobset_gate.podgroups.deadline import bare_pods_message
from jobset_gate.podgroups.generation import MemberState
from jobset_gate.podgroups.missing import missing_members
from jobset_gate.podgroups.phase import MemberCounts, Phase
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot
from jobset_gate.podgroups.text import truncate_list

MOST_PODS_NAMED = 3
MAX_SCHEDULER_BYTES = 900
"""Bytes of what the scheduler says: an Event takes 1,024 characters, and there is more in it."""


def status_reason(
    seen: GroupSnapshot, counts: MemberCounts, why: GroupReason | None, blocked: str, now: float
) -> GroupReason:
    """What is told. `why`: what holds it up by the outlook; `blocked`: what holds up its way back, "" if nothing."""
    record = seen.record
    if record is None or record.stage is AdmissionState.CLOSED:
        return _waiting(seen, why, now, counts)
    if record.stage is AdmissionState.ROLLING_BACK:
        return _rolling_back(seen, record, blocked)
    if why is not None and why.reason == names.REASON_NATIVE_UNAVAILABLE:
        return why
    if record.satisfied is not None or counts.bound >= counts.minimum:
        return _satisfied(counts, phases.group_phase(counts))
    return _placing(seen, record, counts)


def _waiting(seen: GroupSnapshot, why: GroupReason | None, now: float, counts: MemberCounts) -> GroupReason:
    record = seen.record
    if record is not None and record.not_before > now and (why is None or why.reason == names.REASON_ROLLED_BACK):
        until = datetime.fromtimestamp(record.not_before, UTC).strftime("%H:%M:%SZ")
        text = f"taken back {_times(record.rolled_back)}: {record.why}; not opened again before {until}"
        return GroupReason(reason=names.REASON_ROLLED_BACK, message=text)
    if why is not None:
        return why
    if 0 < counts.minimum <= counts.bound:
        return _satisfied(counts, phases.group_phase(counts))
    text = f"{counts.present}/{counts.minimum} pods exist"
    members = generation.member_table(seen)
    left = members[MemberState.OPENED]
    if left and not members[MemberState.HELD]:  # they were opened by a record that is gone
        words = f"{len(left)} were opened before its PodGroup was made anew, so no limit runs for them"
        text = f"{counts.bound}/{counts.minimum} pods are bound; {words}"
        return GroupReason(reason=names.REASON_GATHERED, message=text + unscheduled_text(seen))
    if 0 < counts.minimum <= counts.present:
        return GroupReason(reason=names.REASON_GATHERED, message=f"{text}, nothing holds it up")
    return GroupReason(reason=names.REASON_GATHERING, message=text)


def _rolling_back(seen: GroupSnapshot, record: AdmissionRecord, blocked: str) -> GroupReason:
    left = [it for it in seen.members if it.generation == record.generation]
    bare = [it.name for it in left if it.controller is None and not it.deleting]
    if blocked:
        return GroupReason(reason=names.REASON_ROLLBACK_BLOCKED, message=blocked)
    if bare and len(bare) == len(left):  # nobody but these is waited for
        return GroupReason(reason=names.REASON_ROLLBACK_BLOCKED, message=bare_pods_message(bare))
    text = f"is being taken back: {record.why}; pods left: {len(left)}"
    return GroupReason(reason=names.REASON_ROLLED_BACK, message=text)


def _satisfied(counts: MemberCounts, phase: Phase) -> GroupReason:
    if phase is Phase.FINISHED:
        return GroupReason(reason=names.REASON_FINISHED, message=f"all {counts.succeeded} pods have succeeded")
    running = f"{counts.running} of {counts.bound} pods run"
    if counts.succeeded:
        running += f", {counts.succeeded} have succeeded"
    if phase is Phase.FAILED:
        return GroupReason(reason=names.REASON_FAILED, message=f"{counts.failed} failed; {running}")
    if phase is Phase.RUNNING:
        return GroupReason(reason=names.REASON_RUNNING, message=running)
    return GroupReason(
        reason=names.REASON_SATISFIED, message=f"{counts.bound}/{counts.minimum} pods are bound; {running}"
    )


def _placing(seen: GroupSnapshot, record: AdmissionRecord, counts: MemberCounts) -> GroupReason:
    text = f"{counts.bound}/{counts.minimum} pods are bound"
    words = unscheduled_text(seen)
    if not counts.deadline_passed:
        return GroupReason(reason=names.REASON_PLACING, message=text + words)
    limit = f"within {float(record.wait) * (1 + record.extended):g}s"
    rest = "; its mode is NonStrict, so nothing is taken back" if record.marked else ""
    return GroupReason(reason=names.REASON_TIMED_OUT, message=f"{text} {limit}{rest}{words}")


def unscheduled_text(seen: GroupSnapshot) -> str:
    """`; missing: 37 pods: Unscheduled: 0/40 nodes are available ...`: in the scheduler's words, "" if it has none."""
    found = missing_members(it for it in seen.members if it.unschedulable and not it.bound and not it.deleting)
    return said.sentence("", found, MAX_SCHEDULER_BYTES) if found else ""


def pod_names(pods: Sequence[str]) -> str:
    """The first few of them."""
    return truncate_list(sorted(pods), MOST_PODS_NAMED)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
