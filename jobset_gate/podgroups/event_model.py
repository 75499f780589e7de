"""What Events tell of a group: facts, and the moment that they are taken from (G5).

A group without a PodGroup has only its pods to be told of it on.
"""

from collections.abc import Sequence

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.phase import MemberCounts
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod


class GroupEvent(Value, frozen=True):
    """Something to be told by an Event."""

    reason: str
    message: str
    dedup_key: str
    """Facts of one reason with the same word here are one and the same, whatever their message."""
    warning: bool = False
    not_before: float = 0.0
    """Not to be told before, in seconds since the epoch: it may have passed by then."""
    occurred_at: float | None = None
    """When it came about, where that is known: old news is none."""
    on_group: bool = True
    pods: tuple[MemberPod, ...] = ()
    """Pods that bear it, too."""


class EventContext(Value, frozen=True):
    """A group at one moment, with what was made of it."""

    snapshot: GroupSnapshot
    counts: MemberCounts
    reason: GroupReason
    ungated: tuple[MemberPod, ...] = ()
    """By name."""
    moved: tuple[MemberPod, ...] = ()
    """By name."""
    warnings: tuple[str, ...] = ()


def event_context(
    seen: GroupSnapshot, counts: MemberCounts, standing: GroupReason, doubts: Sequence[str] = ()
) -> EventContext:
    """A group with those of its members that are not as they should be."""
    ungated = sort_by_name([it for it in seen.members if it.ungated])
    moved = sort_by_name(_moved(seen.members))
    return EventContext(
        snapshot=seen,
        counts=counts,
        reason=standing,
        ungated=tuple(ungated),
        moved=tuple(moved),
        warnings=tuple(doubts),
    )


def group_event(
    seen: GroupSnapshot,
    reason: str,
    message: str,
    *,
    once: str,
    warning: bool = False,
    due: float = 0.0,
    at: float | None = None,
    bearers: tuple[MemberPod, ...] = (),
) -> GroupEvent:
    """On the group; where there is no PodGroup, on a pod of it."""
    if not bearers and seen.group.pod_group is None:
        bearers = (min(seen.members, key=lambda it: it.name),) if seen.members else ()
    return GroupEvent(
        reason=reason, message=message, dedup_key=once, warning=warning, not_before=due, occurred_at=at, pods=bearers
    )


def pods_event(reason: str, message: str, bearers: Sequence[MemberPod], *, once: str, due: float = 0.0) -> GroupEvent:
    """On each of these pods."""
    return GroupEvent(
        reason=reason,
        message=message,
        dedup_key=once,
        warning=True,
        not_before=due,
        on_group=False,
        pods=tuple(bearers),
    )


def sort_by_name(members: Sequence[MemberPod]) -> list[MemberPod]:
    """In the order of their names."""
    return sorted(members, key=lambda it: it.name)


def _moved(members: Sequence[MemberPod]) -> list[MemberPod]:
    """Those that say something else by now. Most have one and the same claim: it is looked into once."""
    known: dict[tuple[int, str], bool] = {}
    found = []
    for member in members:
        said = (id(member.membership), member.group_label)
        if said not in known:
            known[said] = member.moved
        if known[said]:
            found.append(member)
    return found
