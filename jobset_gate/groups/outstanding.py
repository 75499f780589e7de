"""What of open groups is still to be placed, or to be found placed: others have to leave room for it (G3).

A record is believed only as far as there are pods: room is kept for those that exist, and for those that have existed
before the eyes of whoever asks, since somebody may come in their place.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import msgspec

from jobset_gate.groups import fit, generation
from jobset_gate.groups.candidates import Opened
from jobset_gate.groups.certainty import Shape
from jobset_gate.groups.demands import marks, shapes
from jobset_gate.groups.domains import Domains
from jobset_gate.groups.fit import Demand
from jobset_gate.groups.model import Key
from jobset_gate.groups.record import How, Record, Stage, of
from jobset_gate.groups.seen import GroupSeen, MemberSeen

UNKNOWN_SECONDS: Final = 30.0
"""How long pods that nobody waits for any more are reckoned with where it is not known what keeps them from their
place: it need not be room. Of others it is, so they take what comes free."""

MARKED_SECONDS: Final = 300.0
"""How long after its limit a group that is not taken back, or not wholly, needs a place of its own."""

_ENDED: Final = ("Succeeded", "Failed")

Look = Callable[[Key], GroupSeen | None]
Last = Callable[[Key], Sequence[Shape]]


def outstanding(
    seen: GroupSeen, bound: Callable[[str], bool], domains: Domains, now: float, before: Sequence[Shape] = ()
) -> tuple[Opened, ...]:
    """What of an opened group is still to be placed, or to be found placed, as far as it is to be reckoned with.

    `before`: its pods when there were most of them.
    """
    record = seen.record
    if record is None or record.stage is Stage.CLOSED:
        return _strays(seen, bound, domains, now)
    late = record.marked or record.stage is Stage.ROLLING_BACK
    over = record.satisfied is not None or (late and now >= record.at + float(record.wait) + MARKED_SECONDS)
    opened = [it for it in generation.opened(seen, record.generation) if it.phase not in _ENDED]
    placed = [it for it in opened if it.node and not bound(it.uid)]  # it has its place, and the nodes lag behind
    rest = [it for it in opened if not it.node and not bound(it.uid)]
    rest = [it for it in rest if _is_known(it, now)] if over else rest
    rest += generation.passing(seen, record, now)
    short = max(0, record.minimum - generation.bound(seen))
    how: dict[str, Any] = {"proven": record.how is How.FIT, "placed": over, "since": record.at}
    gone = () if over or record.stage is not Stage.OPEN else _less(before, living(seen, domains), short - len(rest))
    found = (
        _still(seen, placed, len(placed), domains, proven=True),
        _still(seen, rest, short, domains, **how),
        _opened(seen.group.key, gone, domains, priority=_priority(seen), **how),
    )
    return (*(it for it in found if it is not None), *_strays(seen, bound, domains, now))


def absent(seen: GroupSeen, look: Look, last: Last, domains: Domains) -> Iterator[Opened]:
    """Gangs of the same decision of which no pod is left, as the first that has some knows of them.

    Whoever comes to one of them takes a place in the decision, so it needs room as its own pods did the `last` time
    that there were any.
    """
    record = seen.record
    if not is_being_placed(record) or record is None or len(record.gangs) < 2:
        return
    others = {key: look(key) for key, _ in record.gangs}
    there = [key for key, it in others.items() if it is not None and it.members]
    if not there or there[0] != seen.group.key:
        return
    for key in [it for it in others if it not in there]:
        share = of(record, key)
        gone = () if share is None else _less(last(key), (), share.minimum)
        how: dict[str, Any] = {"proven": record.how is How.FIT, "since": record.at, "priority": _priority(seen)}
        found = _opened(key, gone, domains, **how)
        if found is not None:
            yield found


def is_being_placed(record: Record | None) -> bool:
    """Whether a group is open and its minimum not bound yet."""
    return record is not None and record.stage is Stage.OPEN and record.satisfied is None


def living(seen: GroupSeen, domains: Domains) -> tuple[Shape, ...]:
    """Its pods that are there."""
    return shapes([it for it in seen.members if it.alive and it.phase not in _ENDED], domains)


def _less(before: Sequence[Shape], now: Sequence[Shape], most: int) -> tuple[Shape, ...]:
    """Pods that were there and are not: the largest, and not more than so many."""
    there = {it.likeness: it.count for it in now}
    found: list[Shape] = []
    for it in sorted(before, key=lambda it: fit.size(it.requests), reverse=True):
        many = min(it.count - there.get(it.likeness, 0), most - sum(shape.count for shape in found))
        if many > 0:
            found.append(msgspec.structs.replace(it, count=many))
    return tuple(found)


def _is_known(member: MemberSeen, now: float) -> bool:
    """Whether it takes a place as soon as there is room, or perhaps will soon."""
    return not member.unmodelled or now < generation.opened_at(member, now) + UNKNOWN_SECONDS


def _strays(seen: GroupSeen, bound: Callable[[str], bool], domains: Domains, now: float) -> tuple[Opened, ...]:
    """Opened pods of which no record tells any more, since the PodGroup was made anew: nothing proves their room.

    There is no limit for them either, so they need a place of their own for as long as one would have lasted, and a
    while.
    """
    current = 0 if seen.record is None or seen.record.stage is Stage.CLOSED else seen.record.generation
    since = now - float(seen.group.wait) - MARKED_SECONDS
    strays = [
        it
        for it in seen.members
        if it.generation not in (0, current) and not it.gated and it.alive and it.phase not in _ENDED
    ]
    placed = [it for it in strays if it.node and not bound(it.uid)]
    rest = [it for it in strays if not it.node and not bound(it.uid)]
    new = [it for it in rest if since < generation.opened_at(it, now)]
    old = [it for it in rest if it not in new and _is_known(it, now)]
    found = (
        _still(seen, placed, len(placed), domains, proven=True),
        _still(seen, new, len(new), domains, proven=False),
        _still(seen, old, 0, domains, proven=False, placed=True),
    )
    return tuple(it for it in found if it is not None)


def _still(seen: GroupSeen, members: Sequence[MemberSeen], minimum: int, domains: Domains, **how: Any) -> Opened | None:
    how = {"minimum": minimum, "priority": _priority(seen), "marks": marks(members), **how}
    return _opened(seen.group.key, shapes(members, domains), domains, **how)


def _opened(
    key: Key, alike: Sequence[Shape], domains: Domains, *, minimum: int | None = None, **how: Any
) -> Opened | None:
    if not alike:
        return None
    minimum = sum(it.count for it in alike) if minimum is None else minimum
    demand = Demand(key=key, shapes=tuple(alike), minimum=minimum)
    return Opened(demands=(demand,), domain=domains.of(alike), **how)


def _priority(seen: GroupSeen) -> int:
    return max((it.priority for it in seen.members), default=0)
