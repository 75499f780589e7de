"""What of open groups is still to be placed, or to be found placed: others have to leave room for it (G3)."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from jobset_gate.groups import fit, generation
from jobset_gate.groups.candidates import Opened
from jobset_gate.groups.certainty import Shape
from jobset_gate.groups.demands import shapes
from jobset_gate.groups.domains import Domains
from jobset_gate.groups.fit import Demand
from jobset_gate.groups.model import Key
from jobset_gate.groups.record import How, Stage, of
from jobset_gate.groups.seen import GroupSeen, MemberSeen

SURPLUS_SECONDS: Final = 30.0
"""How long members above the minimum are reckoned with after their gates went: then they are pods like all others."""

MARKED_SECONDS: Final = 300.0
"""How long after its limit a group that is not taken back, or not wholly, is reckoned with."""

_ENDED: Final = ("Succeeded", "Failed")

Look = Callable[[Key], GroupSeen | None]
Last = Callable[[Key], Sequence[Shape]]


def outstanding(seen: GroupSeen, bound: Callable[[str], bool], domains: Domains, now: float) -> tuple[Opened, ...]:
    """What of an opened group is still to be placed, or to be found placed, as far as it is to be reckoned with."""
    record = seen.record
    if record is None or record.stage is Stage.CLOSED:
        return _strays(seen, bound, domains, now)
    late = record.marked or record.stage is Stage.ROLLING_BACK
    forgotten = late and now >= record.at + float(record.wait) + MARKED_SECONDS
    opened = [it for it in generation.opened(seen, record.generation) if it.phase not in _ENDED]
    placed = [it for it in opened if it.node and not bound(it.uid)]  # it has its place, and the nodes lag behind
    rest = [] if forgotten else [it for it in opened if not it.node and not bound(it.uid)]
    if record.satisfied is not None:
        rest = [it for it in rest if now < generation.opened_at(it, now) + SURPLUS_SECONDS]
    rest += generation.passing(seen, record)
    short = max(0, record.minimum - generation.bound(seen, record.generation))
    sure = record.how is How.FIT
    found = (
        _still(seen.group.key, placed, len(placed), domains, proven=True),
        _still(seen.group.key, rest, short, domains, proven=sure, placed=record.satisfied is not None),
        None if forgotten or record.satisfied is not None else _missing(seen, short - len(rest), domains, proven=sure),
    )
    return (*(it for it in found if it is not None), *_strays(seen, bound, domains, now))


def absent(seen: GroupSeen, look: Look, last: Last, domains: Domains) -> Iterator[Opened]:
    """Gangs of the same decision of which no pod is left, as the first that has some knows of them.

    Whoever comes to one of them takes a place in the decision, so it needs room as its own pods did the `last` time
    that there were any; where nobody knows that any more, as the largest of the others.
    """
    record, alike = seen.record, shapes(seen.members)
    if record is None or record.stage is not Stage.OPEN or record.satisfied is not None or len(record.gangs) < 2:
        return
    others = {key: look(key) for key, _ in record.gangs}
    there = [key for key, it in others.items() if it is not None and it.members]
    if not there or there[0] != seen.group.key:
        return
    for key in [it for it in others if it not in there]:
        share = of(record, key)
        if share is not None and share.minimum:
            yield _as_large(key, last(key) or alike, share.minimum, domains, proven=record.how is How.FIT)


def _missing(seen: GroupSeen, short: int, domains: Domains, *, proven: bool) -> Opened | None:
    """Those that an open group lacks: who comes in the place of one that is gone needs room as the largest did."""
    alike = shapes(seen.members)
    if short <= 0 or not alike or seen.record is None or seen.record.stage is not Stage.OPEN:
        return None
    return _as_large(seen.group.key, alike, short, domains, proven=proven)


def _as_large(key: Key, alike: Sequence[Shape], short: int, domains: Domains, *, proven: bool) -> Opened:
    largest = msgspec.structs.replace(max(alike, key=lambda it: fit.size(it.requests)), count=short)
    return Opened(demands=(Demand(key=key, shapes=(largest,), minimum=short),), domain=domains.of(alike), proven=proven)


def _strays(seen: GroupSeen, bound: Callable[[str], bool], domains: Domains, now: float) -> tuple[Opened, ...]:
    """Opened pods of which no record tells any more, since the PodGroup was made anew: nothing proves their room.

    There is no limit for them either, so they are reckoned with for as long as one would have lasted, and a while.
    """
    current = 0 if seen.record is None or seen.record.stage is Stage.CLOSED else seen.record.generation
    since = now - float(seen.group.wait) - MARKED_SECONDS
    strays = [
        it
        for it in seen.members
        if it.generation not in (0, current) and not it.gated and it.alive and it.phase not in _ENDED
    ]
    placed = [it for it in strays if it.node and not bound(it.uid)]
    rest = [it for it in strays if not it.node and not bound(it.uid) and since < generation.opened_at(it, now)]
    found = (
        _still(seen.group.key, placed, len(placed), domains, proven=True),
        _still(seen.group.key, rest, len(rest), domains, proven=False),
    )
    return tuple(it for it in found if it is not None)


def _still(key: Key, members: Sequence[MemberSeen], minimum: int, domains: Domains, **how: bool) -> Opened | None:
    alike = shapes(members)
    if not alike:
        return None
    demand = Demand(key=key, shapes=alike, minimum=minimum)
    return Opened(demands=(demand,), domain=domains.of(alike), **how)
