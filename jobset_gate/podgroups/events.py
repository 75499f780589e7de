"""Events of a group: which there are for its current state; the controller records each once (G4, G5)."""

import re
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.podgroups import generation
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.phase import MemberCounts
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionState
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod

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


class EventContext(Value, frozen=True):
    """The state of a group that its Events depend on."""

    snapshot: GroupSnapshot
    counts: MemberCounts
    reason: GroupReason
    ungated: tuple[MemberPod, ...] = ()
    """By name."""
    moved: tuple[MemberPod, ...] = ()
    """By name."""
    warnings: tuple[str, ...] = ()

    @property
    def generation(self) -> int:
        """Most Events occur once in a generation."""
        return self.snapshot.generation


def event_context(
    seen: GroupSnapshot, counts: MemberCounts, reason: GroupReason, warnings: Sequence[str] = ()
) -> EventContext:
    """The context of a group and its reason."""
    ungated = tuple(_by_name(it for it in seen.members if it.ungated))
    moved = tuple(_by_name(_moved(seen.members)))
    return EventContext(
        snapshot=seen, counts=counts, reason=reason, ungated=ungated, moved=moved, warnings=tuple(warnings)
    )


def group_events(context: EventContext) -> tuple[GroupEvent, ...]:
    """All Events for the current state."""
    return tuple(event for rule in _RULES for event in rule(context))


def _on_group(context: EventContext, reason: str, message: str, key: str, **more: object) -> GroupEvent:
    """On the PodGroup; without one, on a pod."""
    seen = context.snapshot
    if not more.get("pods") and seen.group.pod_group is None:
        more["pods"] = tuple(_by_name(seen.members)[:1])
    return GroupEvent(reason=reason, message=message, dedup_key=key, **more)  # type: ignore[arg-type]  # its fields


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


def _opened(context: EventContext) -> Iterator[GroupEvent]:
    record = context.snapshot.record
    if record is None or record.stage is AdmissionState.CLOSED:
        return
    others = f" together with {len(record.gangs) - 1} more" if len(record.gangs) > 1 else ""
    text = f"opened{others} for {record.minimum} pods or more ({record.how})"
    yield _on_group(context, names.REASON_OPENED, text, str(record.generation), occurred_at=record.at)


def _satisfied(context: EventContext) -> Iterator[GroupEvent]:
    record = context.snapshot.record
    if record is None or record.satisfied is None:
        return
    took = max(0.0, record.satisfied - record.at)
    text = f"{record.minimum} pods are bound, {took:.1f} s after the group was opened"
    yield _on_group(context, names.REASON_SATISFIED, text, str(record.generation), occurred_at=record.satisfied)


def _rolled_back(context: EventContext) -> Iterator[GroupEvent]:
    record = context.snapshot.record
    if record is None or record.stage is AdmissionState.OPEN or not record.why:
        return
    yield _on_group(context, names.REASON_ROLLED_BACK, record.why, str(record.generation), warning=True)


def _waits(context: EventContext) -> Iterator[GroupEvent]:
    """Why it waits or has failed: once for each reason, and mostly for each message."""
    seen, reason, message = context.snapshot, context.reason.reason, context.reason.message
    if reason in WARNING_REASONS:
        blamed = {pod for pod, _ in seen.group.blamed}
        pods = [it for it in seen.members if it.name in blamed] or _by_name(seen.members)
        text = _DIGITS.sub("", message) if reason in _WITH_COUNTS else message
        key = f"{context.generation} {'' if reason in _ONE_PER_REASON else text}"
        yield _on_group(context, reason, message, key, warning=True, pods=tuple(pods[:MAX_EVENT_PODS]))
    if reason in TRANSIENT_REASONS:
        yield _on_group(context, reason, message, f"{context.generation}")


def _gathering(context: EventContext) -> Iterator[GroupEvent]:
    members = context.snapshot.members
    if context.reason.reason != names.REASON_GATHERING or not members:
        return
    since = min(it.created for it in members)
    text = f"still gathering after 5 minutes: {context.reason.message}"
    key = f"{context.generation} {since}"
    yield _on_group(context, names.REASON_GATHERING, text, key, not_before=since + GATHERING_EVENT_DELAY)


def _memberships(context: EventContext) -> Iterator[GroupEvent]:
    """Members that were never held, and those that name another group now."""
    key = context.snapshot.group.key
    group = f"{key.path} ({key.design})"
    if context.ungated:
        text = f"was bound without being held for its group {group}"
        yield _on_pods(names.REASON_UNGATED, text, context.ungated[:MAX_EVENT_PODS], "")
    if context.moved:
        text = f"stays in the group {group} that it was created in, whatever it says by now"
        yield _on_pods(names.REASON_MEMBERSHIP_FIXED, text, context.moved[:MAX_EVENT_PODS], "")


def _barrier_too_short(context: EventContext) -> Iterator[GroupEvent]:
    for text in context.warnings:
        yield _on_group(context, names.REASON_BARRIER_TOO_SHORT, text, text, warning=True)


def _ignored(context: EventContext) -> Iterator[GroupEvent]:
    group = context.snapshot.group
    memberships = {id(it.membership): it.membership for it in context.snapshot.members if it.membership is not None}
    found = {key for it in memberships.values() for key in it.ignored}
    found.update(group.pod_group.ignored if group.pod_group is not None else ())
    if found:
        text = f"not heeded: {', '.join(sorted(found)[:MAX_EVENT_PODS])}"
        yield _on_group(context, names.REASON_NOT_HEEDED, text, text, warning=True)


# --- KEP-24: Unschedulable -------------------------------------------------------------------------------------------


def _kep24(context: EventContext) -> Iterator[GroupEvent]:
    if context.snapshot.group.key.design is Flavor.KEP_24:
        yield from _nameless(context)
        yield from _too_few(context)
        yield from _depleted(context)


def _too_few(context: EventContext) -> Iterator[GroupEvent]:
    """Each pod of a group with too few of them."""
    held = _held(context)
    if not held or context.reason.reason not in (names.REASON_GATHERING, names.REASON_CANNOT_GATHER):
        return
    not_before = max(it.created for it in held) + TOO_FEW_EVENT_DELAY
    text = f"its group {context.snapshot.group.key.path} has too few pods: {context.reason.message}"
    yield _on_pods(names.REASON_UNSCHEDULABLE, text, held, str(context.generation), not_before)


def _nameless(context: EventContext) -> Iterator[GroupEvent]:
    """A pod with an empty name has to be created again."""
    held = _held(context)
    if held and not context.snapshot.group.key.name:
        text = f"the annotation {names.KEP24_NAME} is empty: create the pod again with the name of a PodGroup in it"
        yield _on_pods(names.REASON_UNSCHEDULABLE, text, held, "nameless")


def _depleted(context: EventContext) -> Iterator[GroupEvent]:
    """Some pods run, but fewer than the minimum are left."""
    minimum = context.counts.minimum
    present = generation.member_table(context.snapshot).present
    running = sum(it.phase == "Running" for it in present)
    if minimum == 0 or running == 0 or len(present) >= minimum:
        return
    succeeded = sum(it.phase == "Succeeded" for it in present)
    parts = f"{running} running, {len(present) - running - succeeded} pending, {succeeded} succeeded"
    text = f"{len(present)} of {minimum} pods are left: {parts}"
    yield _on_group(context, names.REASON_UNSCHEDULABLE, text, f"{context.generation} {text}", warning=True)


_RULES: Final[tuple[Callable[[EventContext], Iterator[GroupEvent]], ...]] = (
    _opened,
    _satisfied,
    _rolled_back,
    _waits,
    _gathering,
    _kep24,
    _memberships,
    _barrier_too_short,
    _ignored,
)


def _held(context: EventContext) -> list[MemberPod]:
    return _by_name(it for it in context.snapshot.members if it.gated and not it.deleting)[:MAX_UNSCHEDULABLE_PODS]


def _by_name(members: "Iterator[MemberPod] | Sequence[MemberPod]") -> list[MemberPod]:
    return sorted(members, key=lambda it: it.name)


def _moved(members: Sequence[MemberPod]) -> Iterator[MemberPod]:
    """Those that name another group now. Most have the same membership object, which is compared once."""
    known: dict[tuple[int, str], bool] = {}
    for member in members:
        key = (id(member.membership), member.group_label)
        if key not in known:
            known[key] = member.moved
        if known[key]:
            yield member
