"""Events of a group: which there are for its current state; the controller records each once (G4, G5)."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.podgroups.status import GroupStatus

MAX_EVENT_PODS: Final = 5
"""Pods that an Event of a group is recorded on."""
MAX_UNSCHEDULABLE_PODS: Final = 100
"""Pods of a KEP-24 group with an Event of their own."""
GATHERING_EVENT_DELAY: Final = 300.0
"""Seconds before a group that still gathers gets an Event (G4)."""
TOO_FEW_EVENT_DELAY: Final = 5.0
"""Seconds after the newest member before the members of a KEP-24 group with too few get one."""

WARNING_REASONS: Final = frozenset(
    {
        names.REASON_INVALID_GROUP,
        names.REASON_INVALID_GANG_GROUP,
        names.REASON_CANNOT_GATHER,
        names.REASON_POD_GROUP_MISSING,
        names.REASON_NATIVE_UNAVAILABLE,
        names.REASON_NOT_RECORDED,
        names.REASON_ROLLBACK_BLOCKED,
        names.REASON_TIMED_OUT,
    }
)
"""Reasons that last until a user acts."""
_ONE_PER_REASON: Final = frozenset({names.REASON_ROLLBACK_BLOCKED, names.REASON_TIMED_OUT, names.REASON_NOT_RECORDED})
"""Another message is no other Event."""
_WITH_COUNTS: Final = frozenset({names.REASON_POD_GROUP_MISSING, names.REASON_CANNOT_GATHER})
"""Another number in the message is no other Event."""
TRANSIENT_REASONS: Final = frozenset(
    {
        names.REASON_WAITING_FOR_CAPACITY,
        names.REASON_BEHIND_OTHER,
        names.REASON_OTHER_GATE,
        names.REASON_WAITING_FOR_GANG_GROUP,
    }
)
_DIGITS: Final = re.compile("[0-9]+")


class GroupEvent(Value, frozen=True):
    """An Event to be recorded once."""

    reason: str
    message: str
    dedup_key: str
    """Events with the same reason and key are one, whatever their messages."""
    warning: bool = False
    not_before: float = 0.0
    """Not to be recorded earlier, in seconds since the epoch."""
    occurred_at: float | None = None
    """If known: an old occurrence is not recorded."""
    on_group: bool = True
    pods: tuple[MemberPod, ...] = ()
    """Pods that it is recorded on, too."""


def group_events(report: GroupStatus) -> tuple[GroupEvent, ...]:
    """All Events for the current state."""
    return tuple(event for rule in _RULES for event in rule(report))


def _on_group(report: GroupStatus, reason: str, message: str, key: object = "", **more: Any) -> GroupEvent:
    """On the PodGroup; without one, on a pod. Once in a generation, unless another `key` is given."""
    if not more.get("pods") and report.pod_group is None:
        more["pods"] = tuple(_by_name(report.snapshot.members)[:1])
    return GroupEvent(reason=reason, message=message, dedup_key=str(key or report.snapshot.generation), **more)


def _on_pods(reason: str, message: str, pods: Sequence[MemberPod], key: str, not_before: float = 0.0) -> GroupEvent:
    return GroupEvent(
        reason=reason,
        message=message,
        dedup_key=key,
        warning=True,
        not_before=not_before,
        on_group=False,
        pods=tuple(pods),
    )


# --- Rules -----------------------------------------------------------------------------------------------------------


def _of_record(report: GroupStatus) -> Iterator[GroupEvent]:
    record = report.record
    if record is None:
        return
    if record.stage is not AdmissionState.CLOSED:
        others = f" together with {len(record.gangs) - 1} more" if len(record.gangs) > 1 else ""
        text = f"opened{others} for {record.minimum} pods or more ({record.how})"
        yield _on_group(report, names.REASON_OPENED, text, occurred_at=record.at)
    if record.satisfied is not None:
        took = max(0.0, record.satisfied - record.at)
        text = f"{record.minimum} pods are bound, {took:.1f} s after the group was opened"
        yield _on_group(report, names.REASON_SATISFIED, text, occurred_at=record.satisfied)
    if record.stage is not AdmissionState.OPEN and record.why:
        yield _on_group(report, names.REASON_ROLLED_BACK, record.why, warning=True)


def _waits(report: GroupStatus) -> Iterator[GroupEvent]:
    """Why it waits or has failed: once for each reason, and mostly for each message."""
    seen, reason, message = report.snapshot, report.reason, report.own_message
    if reason in WARNING_REASONS:
        blamed = {pod for pod, _ in seen.group.blamed}
        pods = [it for it in seen.members if it.name in blamed] or _by_name(seen.members)
        text = _DIGITS.sub("", message) if reason in _WITH_COUNTS else message
        key = f"{seen.generation} {'' if reason in _ONE_PER_REASON else text}"
        yield _on_group(report, reason, message, key, warning=True, pods=tuple(pods[:MAX_EVENT_PODS]))
    if reason in TRANSIENT_REASONS:
        yield _on_group(report, reason, message)


def _gathering(report: GroupStatus) -> Iterator[GroupEvent]:
    members = report.snapshot.members
    if report.reason == names.REASON_GATHERING and members:
        since = min(it.created for it in members)
        text, key = f"still gathering after 5 minutes: {report.own_message}", f"{report.snapshot.generation} {since}"
        yield _on_group(report, names.REASON_GATHERING, text, key, not_before=since + GATHERING_EVENT_DELAY)


def _memberships(report: GroupStatus) -> Iterator[GroupEvent]:
    """Members that were never held, and those that name another group now."""
    group = f"{report.key.path} ({report.key.flavor})"
    if report.ungated:
        text = f"was bound without being held for its group {group}"
        yield _on_pods(names.REASON_UNGATED, text, report.ungated[:MAX_EVENT_PODS], "")
    if report.moved:
        text = f"stays in the group {group} that it was created in, whatever it says by now"
        yield _on_pods(names.REASON_MEMBERSHIP_FIXED, text, report.moved[:MAX_EVENT_PODS], "")


def _warnings(report: GroupStatus) -> Iterator[GroupEvent]:
    for text in report.warnings:
        yield _on_group(report, names.REASON_BARRIER_TOO_SHORT, text, text, warning=True)
    memberships = {id(it.membership): it.membership for it in report.snapshot.members if it.membership is not None}
    found = {key for it in memberships.values() for key in it.ignored}
    found.update(report.pod_group.ignored if report.pod_group is not None else ())
    if found:
        text = f"ignored: {', '.join(sorted(found)[:MAX_EVENT_PODS])}"
        yield _on_group(report, names.REASON_NOT_HEEDED, text, text, warning=True)


# --- KEP-24: Unschedulable -------------------------------------------------------------------------------------------


def _kep24(report: GroupStatus) -> Iterator[GroupEvent]:
    if report.key.flavor is Flavor.KEP_24:
        held = _by_name(it for it in report.snapshot.members if it.gated and not it.deleting)[:MAX_UNSCHEDULABLE_PODS]
        yield from _too_few(report, held) if held else ()
        yield from _depleted(report)


def _too_few(report: GroupStatus, held: Sequence[MemberPod]) -> Iterator[GroupEvent]:
    """Each pod of a group with too few of them, or with an empty name."""
    if not report.key.name:
        text = f"the annotation {names.KEP24_NAME} is empty: create the pod again with the name of a PodGroup in it"
        yield _on_pods(names.REASON_UNSCHEDULABLE, text, held, "nameless")
    if report.reason in (names.REASON_GATHERING, names.REASON_CANNOT_GATHER):
        text = f"its group {report.key.path} has too few pods: {report.own_message}"
        not_before = max(it.created for it in held) + TOO_FEW_EVENT_DELAY
        yield _on_pods(names.REASON_UNSCHEDULABLE, text, held, str(report.snapshot.generation), not_before)


def _depleted(report: GroupStatus) -> Iterator[GroupEvent]:
    """Some pods run, but fewer than the minimum are left."""
    minimum, present = report.counts.minimum, generation.member_table(report.snapshot).present
    running = sum(it.phase == "Running" for it in present)
    if minimum == 0 or running == 0 or len(present) >= minimum:
        return
    succeeded = sum(it.phase == "Succeeded" for it in present)
    parts = f"{running} running, {len(present) - running - succeeded} pending, {succeeded} succeeded"
    text = f"{len(present)} of {minimum} pods are left: {parts}"
    key = f"{report.snapshot.generation} {text}"
    yield _on_group(report, names.REASON_UNSCHEDULABLE, text, key, warning=True)


_RULES: Final[tuple[Callable[[GroupStatus], Iterator[GroupEvent]], ...]] = (
    _of_record,
    _waits,
    _gathering,
    _kep24,
    _memberships,
    _warnings,
)


def _by_name(members: Iterable[MemberPod]) -> list[MemberPod]:
    return sorted(members, key=lambda it: it.name)
