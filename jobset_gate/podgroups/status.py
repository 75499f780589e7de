"""The status of a group: phase, counts and one reason, the same for conditions, Events, `get groups` and the page (G5).

Messages contain no elapsed times, so that they stay the same while nothing happens.
"""

from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.missing import MAX_NAMED_SLOTS, without_numbers
from jobset_gate.barrier.model import MissingByReason, Value
from jobset_gate.explain import text as explanation_text
from jobset_gate.objects import terminal_text
from jobset_gate.objects.terminal_text import truncate_list
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.candidate import Admit, Hold
from jobset_gate.podgroups.eviction import bare_pods_message
from jobset_gate.podgroups.generation import MemberState
from jobset_gate.podgroups.model import Format, PodGroupKey, PodGroupSource
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod, RecordRef


class Phase(StrEnum):
    """The phases of a PodGroup's status."""

    PENDING = "Pending"
    """Not admitted, or evicted, or admitted and no member bound."""
    SCHEDULING = "Scheduling"
    """Admitted, and some members or the whole minimum are bound."""
    RUNNING = "Running"
    """The minimum runs or has succeeded."""
    UNKNOWN = "Unknown"
    """Some members are bound, and the group is being evicted or has missed its limit."""
    FINISHED = "Finished"
    """All pods have succeeded, at least the minimum."""
    FAILED = "Failed"
    """Pods have failed, and fewer than the minimum run or have succeeded."""


class MemberCounts(Value, frozen=True):
    minimum: int
    present: int
    bound: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    opened: bool = False
    """Admitted, or its minimum is bound without admission."""
    deadline_passed: bool = False
    evicting: bool = False


def group_phase(counts: MemberCounts) -> Phase:
    """The first phase whose condition holds."""
    return next(phase for phase, holds in _TABLE if holds(counts))


_TABLE: Final[tuple[tuple[Phase, Callable[[MemberCounts], bool]], ...]] = (
    (Phase.UNKNOWN, lambda it: it.evicting and it.bound > 0),
    (Phase.PENDING, lambda it: not it.opened or it.evicting),
    (Phase.FINISHED, lambda it: it.succeeded >= it.minimum and it.succeeded >= it.present),
    (Phase.RUNNING, lambda it: it.running + it.succeeded >= it.minimum),  # also if a failed pod was replaced
    (Phase.FAILED, lambda it: it.failed > 0),
    (Phase.SCHEDULING, lambda it: it.bound >= it.minimum),
    (Phase.UNKNOWN, lambda it: it.deadline_passed and it.bound > 0),
    (Phase.SCHEDULING, lambda it: it.bound > 0),
    (Phase.PENDING, lambda _: True),  # admitted, and no member bound
)


def count_members(seen: GroupSnapshot, now: float) -> MemberCounts:
    """Of this generation; of all members if none is open."""
    record = seen.record
    opened = record is not None and record.stage is not AdmissionState.CLOSED
    members = generation.member_table(seen)
    bound = members.bound
    minimum = (record.minimum if opened and record is not None else seen.group.minimum) or 0
    failed = members[MemberState.FAILED]
    return MemberCounts(
        minimum=minimum,
        present=len(members.present),
        bound=bound,
        running=sum(it.phase == "Running" for it in members.active),
        succeeded=len(members.succeeded),
        failed=sum(record is None or it.generation == record.generation or it.ungated for it in failed),
        opened=opened or 0 < minimum <= bound,
        deadline_passed=opened and record is not None and _deadline_passed(seen, record, bound, now),
        evicting=record is not None and record.stage is AdmissionState.ROLLING_BACK,
    )


def _deadline_passed(seen: GroupSnapshot, record: AdmissionRecord, bound: int, now: float) -> bool:
    if record.satisfied is not None or bound >= record.minimum:
        return False
    wait = float(record.wait) * (2 if record.extended else 1)
    return record.marked or now >= last_ungated_at(seen, record, now) + wait


def last_ungated_at(seen: GroupSnapshot, record: AdmissionRecord, now: float) -> float:
    """When the last gate was removed, from where the limit runs; before the first, when it was admitted."""
    ungated = (generation.ungated_at(it, now) for it in seen.members if it.generation == record.generation)
    return max(ungated, default=0.0) or min(record.at, now)


MAX_PODS_NAMED: Final = 3
MAX_SCHEDULER_BYTES: Final = 900
"""Bytes of kube-scheduler's messages: the note of an Event has 1,024 characters, and more to say."""
_HUMAN_MANAGER: Final = "kubectl"
"""Prefix of field managers that are no controllers."""


class GroupStatus(Value, frozen=True):
    key: PodGroupKey
    label: str
    formats: tuple[Format, ...]
    record_ref: RecordRef | None
    pod_group: PodGroupSource | None
    created: float
    """Of its PodGroup, else of its oldest member."""
    record: AdmissionRecord | None
    counts: MemberCounts
    phase: Phase
    reason: str
    message: str
    own_message: str
    """Of the reason, without notes on single pods."""
    admitted: int
    """Members whose gates were removed in this generation."""
    occupied_by: str
    """UID of the one controller of its members; "" if they have none, or several."""
    ungated: tuple[MemberPod, ...]
    """Pods that name the group and were bound without its gate."""
    moved: tuple[MemberPod, ...]
    """Pods that name another group now than the one that holds them."""
    managers: tuple[str, ...]
    """Other controllers that write the status of its PodGroup."""
    warnings: tuple[str, ...]
    snapshot: GroupSnapshot


def group_status(
    seen: GroupSnapshot,
    now: float,
    why: Hold | GroupReason | Admit | None = None,
    blocked: str = "",
    warnings: Sequence[str] = (),
) -> GroupStatus:
    """`why`: why it is not admitted; `blocked`: why its eviction is blocked, "" if it is not."""
    counts = count_members(seen, now)
    waits = None if why is None or isinstance(why, Admit) else GroupReason(reason=why.reason, message=why.message)
    reason = status_reason(seen, counts, waits, blocked, now)
    ungated = tuple(it for it in seen.members if it.ungated)
    moved = tuple(it for it in seen.members if it.moved)
    record = seen.record
    ours = record.generation if record is not None and record.stage is not AdmissionState.CLOSED else 0
    return GroupStatus(
        key=seen.group.key,
        label=seen.label,
        formats=seen.group.formats,
        record_ref=seen.record_ref,
        pod_group=seen.group.pod_group,
        created=seen.created,
        record=record,
        counts=counts,
        phase=group_phase(counts),
        reason=reason.reason,
        message=terminal_text.line(_with_notes(reason.message, ungated, moved)),
        admitted=len(generation.opened_members(seen, ours)) if ours else 0,
        own_message=reason.message,
        occupied_by=_occupied_by(seen),
        ungated=ungated,
        moved=moved,
        managers=tuple(it for it in seen.status_managers if not it.startswith(_HUMAN_MANAGER)),
        warnings=tuple(warnings),
        snapshot=seen,
    )


def _occupied_by(seen: GroupSnapshot) -> str:
    controllers = {it.controller.uid if it.controller else "" for it in seen.members}
    return controllers.pop() if len(controllers) == 1 else ""


def _with_notes(message: str, ungated: Sequence[MemberPod], moved: Sequence[MemberPod]) -> str:
    if ungated:
        message += f"; Ungated: {_pod_names(ungated)}"
    if moved:
        message += f"; say something else of their group by now, which is not followed: {_pod_names(moved)}"
    return message


def _pod_names(pods: Sequence[MemberPod]) -> str:
    return truncate_list(sorted(it.name for it in pods), MAX_PODS_NAMED)


# --- The reason ------------------------------------------------------------------------------------------------------


def status_reason(
    seen: GroupSnapshot, counts: MemberCounts, why: GroupReason | None, blocked: str, now: float
) -> GroupReason:
    """The one reason of a group, by its record and members, else by why it is not admitted."""
    record = seen.record
    if record is None or record.stage is AdmissionState.CLOSED:
        return _not_admitted(seen, why, now, counts)
    if record.stage is AdmissionState.ROLLING_BACK:
        return _evicting(seen, record, blocked)
    if why is not None and why.reason == names.REASON_NATIVE_UNAVAILABLE:
        return why
    if record.satisfied is not None or counts.bound >= counts.minimum:
        return _satisfied(counts, group_phase(counts))
    return _scheduling(seen, record, counts)


def _not_admitted(seen: GroupSnapshot, why: GroupReason | None, now: float, counts: MemberCounts) -> GroupReason:
    record = seen.record
    if record is not None and record.not_before > now and (why is None or why.reason == names.REASON_ROLLED_BACK):
        until = datetime.fromtimestamp(record.not_before, UTC).strftime("%H:%M:%SZ")
        times = "once" if record.rolled_back == 1 else f"{record.rolled_back} times"
        text = f"taken back {times}: {record.why}; not opened again before {until}"
        return GroupReason(reason=names.REASON_ROLLED_BACK, message=text)
    if why is not None:
        return why
    if 0 < counts.minimum <= counts.bound:
        return _satisfied(counts, group_phase(counts))
    text = f"{counts.present}/{counts.minimum} pods exist"
    members = generation.member_table(seen)
    opened = members[MemberState.OPENED]
    if opened and not members[MemberState.HELD]:
        without_record = f"{len(opened)} were opened before its PodGroup was created again, so no limit runs for them"
        text = f"{counts.bound}/{counts.minimum} pods are bound; {without_record}"
        return GroupReason(reason=names.REASON_GATHERED, message=text + unscheduled_text(seen))
    if 0 < counts.minimum <= counts.present:
        return GroupReason(reason=names.REASON_GATHERED, message=f"{text}, nothing holds it up")
    return GroupReason(reason=names.REASON_GATHERING, message=text)


def _evicting(seen: GroupSnapshot, record: AdmissionRecord, blocked: str) -> GroupReason:
    left = [it for it in seen.members if it.generation == record.generation]
    bare = [it.name for it in left if it.controller is None and not it.deleting]
    if blocked:
        return GroupReason(reason=names.REASON_ROLLBACK_BLOCKED, message=blocked)
    if bare and len(bare) == len(left):  # only these are left
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
    text = f"{counts.bound}/{counts.minimum} pods are bound; {running}"
    return GroupReason(reason=names.REASON_SATISFIED, message=text)


def _scheduling(seen: GroupSnapshot, record: AdmissionRecord, counts: MemberCounts) -> GroupReason:
    text, unscheduled = f"{counts.bound}/{counts.minimum} pods are bound", unscheduled_text(seen)
    if not counts.deadline_passed:
        return GroupReason(reason=names.REASON_PLACING, message=text + unscheduled)
    limit = f"within {float(record.wait) * (1 + record.extended):g}s"
    rest = "; its mode is NonStrict, so nothing is taken back" if record.marked else ""
    return GroupReason(reason=names.REASON_TIMED_OUT, message=f"{text} {limit}{rest}{unscheduled}")


def unscheduled_text(seen: GroupSnapshot) -> str:
    """`; missing: 37 pods: Unscheduled: 0/40 nodes are available ...`: kube-scheduler's messages, "" if none."""
    found = missing_members(it for it in seen.members if it.unschedulable and not it.bound and not it.deleting)
    return explanation_text.sentence("", found, MAX_SCHEDULER_BYTES) if found else ""


# --- Members without a node ------------------------------------------------------------------------------------------


def missing_members(members: Iterable[MemberPod]) -> tuple[MissingByReason, ...]:
    """Members that are not bound, by reason, the oldest first (A9)."""
    groups: dict[tuple[str, str], list[MemberPod]] = {}
    for member in sorted(members, key=lambda it: (it.created, it.name)):
        if not (member.bound and member.alive):
            reason, detail = waiting_for(member)
            groups.setdefault((reason, without_numbers(detail)), []).append(member)
    return tuple(_missing(reason, some) for (reason, _), some in groups.items())


def waiting_for(member: MemberPod) -> tuple[str, str]:
    """Reason and detail."""
    return next(text for holds, text in _WAITING_FOR if holds(member))(member)


def _missing(reason: str, members: list[MemberPod]) -> MissingByReason:
    first = members[0]
    return MissingByReason(
        reason=reason,
        message=waiting_for(first)[1],
        count=len(members),
        slots=tuple(it.name for it in members[:MAX_NAMED_SLOTS]),
        oldest_created_at=first.created or None,
        command=f"kubectl describe pod {first.name} -n {first.namespace}",
    )


_WAITING_FOR: Final[tuple[tuple[Callable[[MemberPod], bool], Callable[[MemberPod], tuple[str, str]]], ...]] = (
    (lambda it: it.deleting, lambda _: ("Terminating", "is being deleted")),
    (lambda it: it.phase == "Failed", lambda _: ("Failed", "the pod has failed")),
    (lambda it: bool(it.foreign_gates), lambda it: (names.REASON_OTHER_GATE, f"held by {', '.join(it.foreign_gates)}")),
    (lambda it: it.gated, lambda _: ("Held", "until the whole group is opened")),
    (lambda _: True, lambda it: ("Unscheduled", it.unschedulable or "no scheduler has looked at it yet")),
)
