"""What has happened to a group, as Events: on the group, and where that helps on some of its pods (G5)."""

import re
from collections.abc import Callable, Iterator
from typing import Final

from jobset_gate import names
from jobset_gate.podgroups import kep24_events
from jobset_gate.podgroups.event_model import EventContext, GroupEvent, group_event, pods_event, sort_by_name
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.record import AdmissionState

_DIGITS: Final = re.compile("[0-9]+")

MAX_EVENT_PODS: Final = 5
"""Pods that bear the Event of a group."""
GATHERING_EVENT_DELAY: Final = 300.0
"""Seconds for which nobody is told that a group is still gathering (G4)."""

_LASTING: Final = frozenset(
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
"""Reasons that somebody has to do something about."""
_STEADY: Final = frozenset({names.REASON_ROLLBACK_BLOCKED, names.REASON_TIMED_OUT, names.REASON_NOT_RECORDED})
"""Those of which another text is no other fact."""
_COUNTING: Final = frozenset({names.REASON_POD_GROUP_MISSING, names.REASON_CANNOT_GATHER})
"""Those whose texts count pods, which says nothing new."""
_QUIET: Final = frozenset(
    {
        names.REASON_WAITING_FOR_CAPACITY,
        names.REASON_BEHIND_OTHER,
        names.REASON_OTHER_GATE,
        names.REASON_WAITING_FOR_GANG_GROUP,
    }
)
"""Reasons that pass by themselves."""


def group_events(told: EventContext) -> tuple[GroupEvent, ...]:
    """All that is true now and worth an Event; who tells them remembers which were told."""
    return tuple(fact for ask in _ASKED for fact in ask(told))


def _opened(told: EventContext) -> Iterator[GroupEvent]:
    record = told.snapshot.record
    if record is None or record.stage is AdmissionState.CLOSED:
        return
    others = f" together with {len(record.gangs) - 1} more" if len(record.gangs) > 1 else ""
    text = f"opened{others} for {record.minimum} pods or more ({record.how})"
    yield group_event(told.snapshot, names.REASON_OPENED, text, once=str(record.generation), at=record.at)


def _satisfied(told: EventContext) -> Iterator[GroupEvent]:
    record = told.snapshot.record
    if record is None or record.satisfied is None:
        return
    took = max(0.0, record.satisfied - record.at)
    text = f"{record.minimum} pods are bound, {took:.1f} s after the group was opened"
    yield group_event(told.snapshot, names.REASON_SATISFIED, text, once=str(record.generation), at=record.satisfied)


def _rolled_back(told: EventContext) -> Iterator[GroupEvent]:
    record = told.snapshot.record
    if record is None or record.stage is AdmissionState.OPEN or not record.why:
        return
    yield group_event(told.snapshot, names.REASON_ROLLED_BACK, record.why, once=str(record.generation), warning=True)


def _waits(told: EventContext) -> Iterator[GroupEvent]:
    """Why it waits, or went wrong: anew for each reason and each text, for the heralds limit how often."""
    if told.reason.reason in _LASTING:
        blamed = {pod for pod, _ in told.snapshot.group.blamed}
        guilty = [it for it in told.snapshot.members if it.name in blamed]
        bearers = tuple((guilty or sort_by_name(told.snapshot.members))[:MAX_EVENT_PODS])
        once = f"{told.snapshot.generation} {_sameness(told.reason)}"
        yield group_event(
            told.snapshot, told.reason.reason, told.reason.message, once=once, warning=True, bearers=bearers
        )
    if told.reason.reason in _QUIET:
        yield group_event(told.snapshot, told.reason.reason, told.reason.message, once=f"{told.snapshot.generation}")


def _sameness(standing: GroupReason) -> str:
    if standing.reason in _STEADY:
        return ""
    return _DIGITS.sub("", standing.message) if standing.reason in _COUNTING else standing.message


def _gathering(told: EventContext) -> Iterator[GroupEvent]:
    if told.reason.reason != names.REASON_GATHERING or not told.snapshot.members:
        return
    since = min(it.created for it in told.snapshot.members)
    text = f"still gathering after 5 minutes: {told.reason.message}"
    yield group_event(
        told.snapshot,
        names.REASON_GATHERING,
        text,
        once=f"{told.snapshot.generation} {since}",
        due=since + GATHERING_EVENT_DELAY,
    )


def _strangers(told: EventContext) -> Iterator[GroupEvent]:
    """Members that were never held, and those that would like to be in another group by now."""
    group = f"{told.snapshot.group.key.path} ({told.snapshot.group.key.design})"
    if told.ungated:
        text = f"was bound without being held for its group {group}"
        yield pods_event(names.REASON_UNGATED, text, told.ungated[:MAX_EVENT_PODS], once="")
    if told.moved:
        text = f"stays in the group {group} that it was created in, whatever it says by now"
        yield pods_event(names.REASON_MEMBERSHIP_FIXED, text, told.moved[:MAX_EVENT_PODS], once="")


def _doubtful(told: EventContext) -> Iterator[GroupEvent]:
    """Its pods may run into something later on."""
    for doubt in told.warnings:
        yield group_event(told.snapshot, names.REASON_BARRIER_TOO_SHORT, doubt, once=doubt, warning=True)


def _ignored(told: EventContext) -> Iterator[GroupEvent]:
    """What somebody has asked for in vain."""
    said = {id(it.membership): it.membership for it in told.snapshot.members if it.membership is not None}
    found = {key for it in said.values() for key in it.ignored}
    home = told.snapshot.group.pod_group
    found.update(home.ignored if home is not None else ())
    if found:
        text = f"not heeded: {', '.join(sorted(found)[:MAX_EVENT_PODS])}"
        yield group_event(told.snapshot, names.REASON_NOT_HEEDED, text, once=text, warning=True)


_ASKED: Final[tuple[Callable[[EventContext], Iterator[GroupEvent]], ...]] = (
    _opened,
    _satisfied,
    _rolled_back,
    _waits,
    _gathering,
    kep24_events.kep24_events,
    _strangers,
    _doubtful,
    _ignored,
)
