"""What of open groups is still to be placed, or to be found placed: others have to leave room for it (G3).

A record is believed only as far as there are pods: room is kept for those that exist, and for those that have existed
before the eyes of whoever asks, since somebody may come in their place.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from jobset_gate.podgroups import generation
from jobset_gate.podgroups.candidate import AdmittedGroup
from jobset_gate.podgroups.candidate_requests import labelled_pods, pod_shapes
from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.domains import Domains
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import PodShape
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState, record_for
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod

UNSUPPORTED_GRACE_SECONDS: Final = 30.0
"""How long pods that nobody waits for any more are reckoned with where it is not known what keeps them from their
place: it need not be room. Of others it is, so they take what comes free."""

AFTER_DEADLINE_SECONDS: Final = 300.0
"""How long after its limit a group that is not taken back, or not wholly, needs a place of its own."""

_ENDED: Final = ("Succeeded", "Failed")

SnapshotLookup = Callable[[PodGroupKey], GroupSnapshot | None]
LastPods = Callable[[PodGroupKey], Sequence[PodShape]]


def reserved_for(
    seen: GroupSnapshot, bound: Callable[[str], bool], domains: Domains, now: float, before: Sequence[PodShape] = ()
) -> tuple[AdmittedGroup, ...]:
    """What of an opened group is still to be placed, or to be found placed, as far as it is to be reckoned with.

    `before`: its pods when there were most of them.
    """
    record = seen.record
    if record is None or record.stage is AdmissionState.CLOSED:
        return _without_record(seen, bound, domains, now)
    late = record.marked or record.stage is AdmissionState.ROLLING_BACK
    over = record.satisfied is not None or (late and now >= record.at + float(record.wait) + AFTER_DEADLINE_SECONDS)
    opened = [it for it in generation.opened_members(seen, record.generation) if it.phase not in _ENDED]
    placed = [it for it in opened if it.node and not bound(it.uid)]  # it has its place, and the nodes lag behind
    rest = [it for it in opened if not it.node and not bound(it.uid)]
    rest = [it for it in rest if _is_known(it, now)] if over else rest
    rest += generation.members_to_ungate(seen, record, now)
    short = max(0, record.minimum - generation.count_bound(seen))
    how: dict[str, Any] = {"proven": record.how is AdmissionMode.FIT, "best_effort": over, "admitted_at": record.at}
    gone = (
        ()
        if over or record.stage is not AdmissionState.OPEN
        else _vanished(before, living_shapes(seen, domains), short - len(rest))
    )
    found = (
        _still(seen, placed, len(placed), domains, proven=True),
        _still(seen, rest, short, domains, **how),
        _opened(seen.group.key, gone, domains, priority=_priority(seen), **how),
    )
    return (*(it for it in found if it is not None), *_without_record(seen, bound, domains, now))


def reserved_for_absent(
    seen: GroupSnapshot, look: SnapshotLookup, last: LastPods, domains: Domains
) -> Iterator[AdmittedGroup]:
    """Gangs of the same decision of which no pod is left, as the first that has some knows of them.

    Whoever comes to one of them takes a place in the decision, so it needs room as its own pods did the `last` time
    that there were any.
    """
    record = seen.record
    if not is_being_scheduled(record) or record is None or len(record.gangs) < 2:
        return
    others = {key: look(key) for key, _ in record.gangs}
    there = [key for key, it in others.items() if it is not None and it.members]
    if not there or there[0] != seen.group.key:
        return
    for key in [it for it in others if it not in there]:
        share = record_for(record, key)
        gone = () if share is None else _vanished(last(key), (), share.minimum)
        how: dict[str, Any] = {
            "proven": record.how is AdmissionMode.FIT,
            "admitted_at": record.at,
            "priority": _priority(seen),
        }
        found = _opened(key, gone, domains, **how)
        if found is not None:
            yield found


def is_being_scheduled(record: AdmissionRecord | None) -> bool:
    """Whether a group is open and its minimum not bound yet."""
    return record is not None and record.stage is AdmissionState.OPEN and record.satisfied is None


def living_shapes(seen: GroupSnapshot, domains: Domains) -> tuple[PodShape, ...]:
    """Its pods that are there."""
    return pod_shapes([it for it in seen.members if it.alive and it.phase not in _ENDED], domains)


def _vanished(before: Sequence[PodShape], now: Sequence[PodShape], most: int) -> tuple[PodShape, ...]:
    """Pods that were there and are not: the largest, and not more than so many."""
    there = {it.equivalence_key: it.count for it in now}
    found: list[PodShape] = []
    for it in sorted(before, key=lambda it: greedy.scarcity(it.requests), reverse=True):
        many = min(it.count - there.get(it.equivalence_key, 0), most - sum(shape.count for shape in found))
        if many > 0:
            found.append(msgspec.structs.replace(it, count=many))
    return tuple(found)


def _is_known(member: MemberPod, now: float) -> bool:
    """Whether it takes a place as soon as there is room, or perhaps will soon."""
    return not member.unsupported or now < generation.ungated_at(member, now) + UNSUPPORTED_GRACE_SECONDS


def _without_record(
    seen: GroupSnapshot, bound: Callable[[str], bool], domains: Domains, now: float
) -> tuple[AdmittedGroup, ...]:
    """Opened pods of which no record tells any more, since the PodGroup was made anew: nothing proves their room.

    There is no limit for them either, so they need a place of their own for as long as one would have lasted, and a
    while.
    """
    current = 0 if seen.record is None or seen.record.stage is AdmissionState.CLOSED else seen.record.generation
    since = now - float(seen.group.wait) - AFTER_DEADLINE_SECONDS
    strays = [
        it
        for it in seen.members
        if it.generation not in (0, current) and not it.gated and it.alive and it.phase not in _ENDED
    ]
    placed = [it for it in strays if it.node and not bound(it.uid)]
    rest = [it for it in strays if not it.node and not bound(it.uid)]
    new = [it for it in rest if since < generation.ungated_at(it, now)]
    old = [it for it in rest if it not in new and _is_known(it, now)]
    found = (
        _still(seen, placed, len(placed), domains, proven=True),
        _still(seen, new, len(new), domains, proven=False),
        _still(seen, old, 0, domains, proven=False, best_effort=True),
    )
    return tuple(it for it in found if it is not None)


def _still(
    seen: GroupSnapshot, members: Sequence[MemberPod], minimum: int, domains: Domains, **how: Any
) -> AdmittedGroup | None:
    how = {"minimum": minimum, "priority": _priority(seen), "labelled_pods": labelled_pods(members), **how}
    return _opened(seen.group.key, pod_shapes(members, domains), domains, **how)


def _opened(
    key: PodGroupKey, alike: Sequence[PodShape], domains: Domains, *, minimum: int | None = None, **how: Any
) -> AdmittedGroup | None:
    if not alike:
        return None
    minimum = sum(it.count for it in alike) if minimum is None else minimum
    demand = GroupRequest(key=key, shapes=tuple(alike), minimum=minimum)
    return AdmittedGroup(requests=(demand,), domain=domains.domain_of(alike), **how)


def _priority(seen: GroupSnapshot) -> int:
    return max((it.priority for it in seen.members), default=0)
