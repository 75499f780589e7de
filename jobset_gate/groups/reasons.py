"""The one reason that is told of a group, and its text: by its record and members, else by what holds it up (G5)."""

from collections.abc import Sequence
from datetime import UTC, datetime

from jobset_gate import explained_lines as said
from jobset_gate import names
from jobset_gate.groups import generation, phases
from jobset_gate.groups.few import first
from jobset_gate.groups.generation import State
from jobset_gate.groups.lacks import lacks
from jobset_gate.groups.phases import Counts, Phase
from jobset_gate.groups.record import Record, Stage
from jobset_gate.groups.seen import GroupSeen
from jobset_gate.groups.standing import Standing
from jobset_gate.groups.wayback import unmade

MOST_PODS_NAMED = 3
LIMIT = 900
"""Bytes of what the scheduler says: an Event takes 1,024 characters, and there is more in it."""


def reason(seen: GroupSeen, counts: Counts, why: Standing | None, blocked: str, now: float) -> Standing:
    """What is told. `why`: what holds it up by the outlook; `blocked`: what holds up its way back, "" if nothing."""
    record = seen.record
    if record is None or record.stage is Stage.CLOSED:
        return _waiting(seen, why, now, counts)
    if record.stage is Stage.ROLLING_BACK:
        return _rolling_back(seen, record, blocked)
    if why is not None and why.reason == names.REASON_NATIVE_UNAVAILABLE:
        return why
    if record.satisfied is not None or counts.bound >= counts.minimum:
        return _satisfied(counts, phases.phase(counts))
    return _placing(seen, record, counts)


def _waiting(seen: GroupSeen, why: Standing | None, now: float, counts: Counts) -> Standing:
    record = seen.record
    if record is not None and record.not_before > now and (why is None or why.reason == names.REASON_ROLLED_BACK):
        until = datetime.fromtimestamp(record.not_before, UTC).strftime("%H:%M:%SZ")
        text = f"taken back {_times(record.rolled_back)}: {record.why}; not opened again before {until}"
        return Standing(reason=names.REASON_ROLLED_BACK, message=text)
    if why is not None:
        return why
    if 0 < counts.minimum <= counts.bound:
        return _satisfied(counts, phases.phase(counts))
    text = f"{counts.present}/{counts.minimum} pods exist"
    members = generation.counted(seen)
    left = members[State.OPENED]
    if left and not members[State.HELD]:  # they were opened by a record that is gone
        words = f"{len(left)} were opened before its PodGroup was made anew, so no limit runs for them"
        text = f"{counts.bound}/{counts.minimum} pods are bound; {words}"
        return Standing(reason=names.REASON_GATHERED, message=text + unplaced(seen))
    if 0 < counts.minimum <= counts.present:
        return Standing(reason=names.REASON_GATHERED, message=f"{text}, nothing holds it up")
    return Standing(reason=names.REASON_GATHERING, message=text)


def _rolling_back(seen: GroupSeen, record: Record, blocked: str) -> Standing:
    left = [it for it in seen.members if it.generation == record.generation]
    bare = [it.name for it in left if it.maker is None and not it.deleting]
    if blocked:
        return Standing(reason=names.REASON_ROLLBACK_BLOCKED, message=blocked)
    if bare and len(bare) == len(left):  # nobody but these is waited for
        return Standing(reason=names.REASON_ROLLBACK_BLOCKED, message=unmade(bare))
    text = f"is being taken back: {record.why}; pods left: {len(left)}"
    return Standing(reason=names.REASON_ROLLED_BACK, message=text)


def _satisfied(counts: Counts, phase: Phase) -> Standing:
    if phase is Phase.FINISHED:
        return Standing(reason=names.REASON_FINISHED, message=f"all {counts.succeeded} pods have succeeded")
    running = f"{counts.running} of {counts.bound} pods run"
    if counts.succeeded:
        running += f", {counts.succeeded} have succeeded"
    if phase is Phase.FAILED:
        return Standing(reason=names.REASON_FAILED, message=f"{counts.failed} failed; {running}")
    if phase is Phase.RUNNING:
        return Standing(reason=names.REASON_RUNNING, message=running)
    return Standing(reason=names.REASON_SATISFIED, message=f"{counts.bound}/{counts.minimum} pods are bound; {running}")


def _placing(seen: GroupSeen, record: Record, counts: Counts) -> Standing:
    text = f"{counts.bound}/{counts.minimum} pods are bound"
    words = unplaced(seen)
    if not counts.late:
        return Standing(reason=names.REASON_PLACING, message=text + words)
    limit = f"within {float(record.wait) * (1 + record.extended):g}s"
    rest = "; its mode is NonStrict, so nothing is taken back" if record.marked else ""
    return Standing(reason=names.REASON_TIMED_OUT, message=f"{text} {limit}{rest}{words}")


def unplaced(seen: GroupSeen) -> str:
    """`; missing: 37 pods: Unscheduled: 0/40 nodes are available ...`: in the scheduler's words, "" if it has none."""
    found = lacks(it for it in seen.members if it.unschedulable and not it.bound and not it.deleting)
    return said.sentence("", found, LIMIT) if found else ""


def named(pods: Sequence[str]) -> str:
    """The first few of them."""
    return first(sorted(pods), MOST_PODS_NAMED)


def _times(number: int) -> str:
    return "once" if number == 1 else f"{number} times"
