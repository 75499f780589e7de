"""Pods of admitted groups that are not bound yet: for which of them room is kept (G3).

A record counts only as far as its pods exist: room is kept for those that exist now, and for those that this process
has seen, since their owners may create others in their place.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from jobset_gate.podgroups import generation
from jobset_gate.podgroups.candidate import AdmittedGroup, Domains, labelled_pods, pod_shapes
from jobset_gate.podgroups.fit.constraints import scarcity
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import PodShape
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, record_for
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod

UNSUPPORTED_GRACE_SECONDS: Final = 30.0
"""For which a best-effort pod counts that may lack something else than resources. Others take what becomes free."""

AFTER_DEADLINE_SECONDS: Final = 300.0
"""After its limit, for which room is kept for a group that is not evicted, or not wholly."""

SnapshotLookup = Callable[[PodGroupKey], GroupSnapshot | None]
LastPods = Callable[[PodGroupKey], Sequence[PodShape]]


def reserved_for(
    seen: GroupSnapshot, bound: Callable[[str], bool], domains: Domains, now: float, before: Sequence[PodShape] = ()
) -> tuple[AdmittedGroup, ...]:
    """The unbound pods of an admitted group. `bound`: whether the nodes account for a pod, by UID; `before`: its pods
    when there were most of them.
    """
    record = seen.record
    if record is None or record.stage is AdmissionState.CLOSED:
        return _without_record(seen, bound, domains, now)
    late = record.marked or record.stage is AdmissionState.ROLLING_BACK
    over = record.satisfied is not None or (late and now >= record.at + float(record.wait) + AFTER_DEADLINE_SECONDS)
    opened = generation.opened_members(seen, record.generation)
    placed, rest = _unbound(opened, bound)
    rest = [it for it in rest if _may_bind(it, now)] if over else rest
    rest += generation.members_to_ungate(seen, record, now)
    short = max(0, record.minimum - generation.count_bound(seen))
    how: dict[str, Any] = {"proven": record.how is AdmissionMode.FIT, "best_effort": over, "admitted_at": record.at}
    counts = not over and record.stage is AdmissionState.OPEN
    gone = _vanished(before, living_shapes(seen, domains), short - len(rest)) if counts else ()
    found = (
        _of_members(seen, placed, len(placed), domains, proven=True),
        _of_members(seen, rest, short, domains, **how),
        _of_shapes(seen.group.key, gone, domains, priority=_priority(seen), **how),
    )
    return (*(it for it in found if it is not None), *_without_record(seen, bound, domains, now))


def reserved_for_absent(
    seen: GroupSnapshot, look: SnapshotLookup, last: LastPods, domains: Domains
) -> Iterator[AdmittedGroup]:
    """Gangs of the same decision without any pod, for the first gang that has some: room is kept as for the pods that
    they had `last`.
    """
    record = seen.record
    if record is None or not is_being_scheduled(record) or len(record.gangs) < 2:
        return
    others = {key: look(key) for key, _ in record.gangs}
    present = [key for key, it in others.items() if it is not None and it.members]
    if not present or present[0] != seen.group.key:
        return
    how: dict[str, Any] = {"proven": record.how is AdmissionMode.FIT, "admitted_at": record.at}
    for key in [it for it in others if it not in present]:
        share = record_for(record, key)
        gone = () if share is None else _vanished(last(key), (), share.minimum)
        found = _of_shapes(key, gone, domains, priority=_priority(seen), **how)
        if found is not None:
            yield found


def is_being_scheduled(record: AdmissionRecord | None) -> bool:
    """Whether a group is admitted and its minimum not bound yet."""
    return record is not None and record.stage is AdmissionState.OPEN and record.satisfied is None


def living_shapes(seen: GroupSnapshot, domains: Domains) -> tuple[PodShape, ...]:
    return pod_shapes([it for it in seen.members if it.alive and not it.ended], domains)


def _unbound(members: Sequence[MemberPod], bound: Callable[[str], bool]) -> tuple[list[MemberPod], list[MemberPod]]:
    """Pods that have a node which does not account for them yet, and pods without one."""
    open_ = [it for it in members if not it.ended and not bound(it.uid)]
    return [it for it in open_ if it.node], [it for it in open_ if not it.node]


def _vanished(before: Sequence[PodShape], now: Sequence[PodShape], most: int) -> tuple[PodShape, ...]:
    """Pods that existed before and do not exist now: the largest, at most so many."""
    present = {it.equivalence_key: it.count for it in now}
    found: list[PodShape] = []
    for it in sorted(before, key=lambda it: scarcity(it.requests), reverse=True):
        many = min(it.count - present.get(it.equivalence_key, 0), most - sum(shape.count for shape in found))
        if many > 0:
            found.append(msgspec.structs.replace(it, count=many))
    return tuple(found)


def _may_bind(member: MemberPod, now: float) -> bool:
    """Whether it is bound as soon as there is room, or may be."""
    return not member.unsupported or now < generation.ungated_at(member, now) + UNSUPPORTED_GRACE_SECONDS


def _without_record(
    seen: GroupSnapshot, bound: Callable[[str], bool], domains: Domains, now: float
) -> tuple[AdmittedGroup, ...]:
    """Ungated pods that belong to no record, since their PodGroup was created again: unproven, and without a limit, so
    that they count for as long as their limit would have lasted, and AFTER_DEADLINE_SECONDS.
    """
    current = 0 if seen.record is None or seen.record.stage is AdmissionState.CLOSED else seen.record.generation
    since = now - float(seen.group.wait) - AFTER_DEADLINE_SECONDS
    strays = [it for it in seen.members if it.generation not in (0, current) and not it.gated and it.alive]
    placed, rest = _unbound(strays, bound)
    new = [it for it in rest if since < generation.ungated_at(it, now)]
    old = [it for it in rest if it not in new and _may_bind(it, now)]
    found = (
        _of_members(seen, placed, len(placed), domains, proven=True),
        _of_members(seen, new, len(new), domains, proven=False),
        _of_members(seen, old, 0, domains, proven=False, best_effort=True),
    )
    return tuple(it for it in found if it is not None)


def _of_members(
    seen: GroupSnapshot, members: Sequence[MemberPod], minimum: int, domains: Domains, **how: Any
) -> AdmittedGroup | None:
    how = {"minimum": minimum, "priority": _priority(seen), "labelled_pods": labelled_pods(members), **how}
    return _of_shapes(seen.group.key, pod_shapes(members, domains), domains, **how)


def _of_shapes(
    key: PodGroupKey, shapes: Sequence[PodShape], domains: Domains, *, minimum: int | None = None, **how: Any
) -> AdmittedGroup | None:
    if not shapes:
        return None
    minimum = sum(it.count for it in shapes) if minimum is None else minimum
    request = GroupRequest(key=key, shapes=tuple(shapes), minimum=minimum)
    return AdmittedGroup(requests=(request,), domain=domains.domain_of(shapes), **how)


def _priority(seen: GroupSnapshot) -> int:
    return max((it.priority for it in seen.members), default=0)
