"""What becomes of the groups that are not open: why each waits, or that it may be considered for opening (G3).

Used by the keeper that opens them and by the command line that tells of them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from math import ceil
from types import MappingProxyType
from typing import Final

import msgspec

from jobset_gate import names
from jobset_gate.groups import fit, generation, opening, standing
from jobset_gate.groups.candidates import Candidate, Check, Hold, Open, Opened
from jobset_gate.groups.certainty import Room, Shape
from jobset_gate.groups.creators import Creator
from jobset_gate.groups.fit import Demand
from jobset_gate.groups.ganggroups import GangGroup
from jobset_gate.groups.model import POD_GROUPS, Group, Key
from jobset_gate.groups.record import How, Record, Stage
from jobset_gate.groups.requests import Amounts
from jobset_gate.groups.seen import GroupSeen, MemberSeen
from jobset_gate.groups.selection import Node, Selection
from jobset_gate.groups.standing import Standing

SURPLUS_SECONDS: Final = 30.0
"""How long members above the minimum are reckoned with after their gates went: then they are pods like all others."""

MARKED_SECONDS: Final = 300.0
"""How long after its limit a group that is not taken back, or not wholly, is reckoned with."""

CLOCKS_DIFFER: Final = 60.0
"""Seconds by which a moment may lie ahead of ours: one that is later was not written by any of us."""

_ENDED: Final = ("Succeeded", "Failed")

Look = Callable[[Key], GroupSeen | None]


class Domains:
    """The nodes that pods may be bound to by their required selection; reckoned once for all that demand the same."""

    def __init__(self, nodes: Sequence[Node] = ()) -> None:
        self._nodes = nodes
        self._known: dict[frozenset[Selection], frozenset[str]] = {}

    def of(self, shapes: Sequence[Shape]) -> frozenset[str]:
        """The same object for the same demands."""
        demanded = frozenset(it.selection for it in shapes)
        known = self._known.get(demanded)
        if known is None:
            known = self._known[demanded] = fit.domain(shapes, self._nodes)
        return known


class Outlook:
    """All that the judgement of a group depends on, besides the group itself."""

    def __init__(
        self,
        look: Look,
        groups: Mapping[Key, Group],
        *,
        across_namespaces: bool = False,
        creators: Mapping[Key, tuple[Creator, ...]] | None = None,
        short_of_quota: Callable[[GroupSeen], str] = lambda _: "",
        barred: Callable[[GroupSeen], Standing | None] = lambda _: None,
        trouble: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`short_of_quota`: what the namespace's quota lacks for a group, "" if nothing. `barred`: what else forbids to
        open it. `trouble`: by API group, why its PodGroups cannot be used.
        """
        self._look, self._groups, self._across = look, groups, across_namespaces
        self._creators = {} if creators is None else creators
        self._short_of_quota, self._barred, self._trouble = short_of_quota, barred, trouble

    def of(self, seen: GroupSeen, domains: Domains, now: float) -> Candidate | Standing | None:
        """A candidate stands for its whole GangGroup, and is the same for each of its gangs. None: nothing to open."""
        record = seen.record
        if record is not None and record.stage is not Stage.CLOSED:
            return None
        others = _gates(seen.members)
        told = standing.facts(
            seen.group,
            self._groups,
            made_by=self._creators.get(seen.group.key, ()),
            other_gates=others,
            across_namespaces=self._across,
        )
        held = standing.standing(told)
        if held is not None and held.reason in _FIRST:
            return self._explained(held, seen.group.key)
        barred = self._barred(seen)  # also of one that never gathers
        if barred is not None:
            return barred
        if held is not None and held.reason not in _PATIENT:
            return held
        return _given_up(record) or _backing_off(record, now) or held or self._together(told.gang_group, domains, now)

    def _together(self, gang_group: GangGroup, domains: Domains, now: float) -> Candidate | Standing | None:
        """All gangs of a GangGroup that are not open yet, as one."""
        seen = [it for key in sorted(gang_group.keys, key=_by_name) if (it := self._look(key)) is not None]
        closed = [it for it in seen if it.record is None or it.record.stage is Stage.CLOSED]
        for each in seen:
            held = self._of_partner(each, now)
            if held is not None:
                return held
        ready = [it for it in closed if generation.waiting(it)]
        return candidate(ready, domains) if ready else None

    def _explained(self, held: Standing, key: Key) -> Standing:
        """A PodGroup may be missing because its kind cannot be used."""
        told = [self._trouble[api] for api in POD_GROUPS[key.design] if api in self._trouble]
        if held.reason != names.REASON_POD_GROUP_MISSING or not told:
            return held
        return Standing(reason=held.reason, message=f"{held.message}; {'; '.join(told)}")

    def _of_partner(self, seen: GroupSeen, now: float) -> Standing | None:
        record, path = seen.record, seen.group.key.path
        if record is not None and record.stage is Stage.ROLLING_BACK:
            return Standing(reason=names.REASON_WAITING_FOR_GANG_GROUP, message=f"{path}: being taken back")
        others = _gates(seen.members)
        if others:
            return Standing(reason=names.REASON_OTHER_GATE, message=f"{path} is also held by {', '.join(others)}")
        barred = self._barred(seen)
        if barred is not None:
            return barred
        short = self._short_of_quota(seen)
        if short:
            return Standing(reason=names.REASON_WAITING_FOR_CAPACITY, message=short)
        return _given_up(record) or _backing_off(record, now)


_FIRST: Final = (names.REASON_INVALID_GROUP, names.REASON_POD_GROUP_MISSING, names.REASON_INVALID_GANG_GROUP)
"""Nothing else is worth telling of such a group."""

_PATIENT: Final = (names.REASON_GATHERING, names.REASON_WAITING_FOR_GANG_GROUP, names.REASON_OTHER_GATE)
"""Less worth telling than that the group was taken back."""


def outlook(
    seen: Iterable[GroupSeen],
    rooms: Sequence[Room],
    *,
    check: Check,
    starvation_seconds: float,
    now: float,
    across_namespaces: bool = False,
    creators: Mapping[Key, tuple[Creator, ...]] | None = None,
    short_of_quota: Callable[[GroupSeen], str] = lambda _: "",
    bound: Callable[[str], bool] = lambda _: False,
) -> dict[Key, Open | Hold | Standing]:
    """Of each group that is not open. `bound`: whether the room that a pod (by UID) takes is in `rooms` already."""
    by_key = {it.group.key: it for it in seen}
    groups = {key: it.group for key, it in by_key.items()}
    view = Outlook(
        by_key.get, groups, across_namespaces=across_namespaces, creators=creators, short_of_quota=short_of_quota
    )
    domains = Domains([it.node for it in rooms])
    told: dict[Key, Open | Hold | Standing] = {}
    waiting: dict[Key, Candidate] = {}
    opened: list[Opened] = []
    for key, each in by_key.items():
        answer = view.of(each, domains, now)
        if isinstance(answer, Candidate):
            waiting[answer.key] = answer
        elif answer is not None:
            told[key] = answer
        opened += outstanding(each, bound, domains, now)
    candidates = list(waiting.values())
    for it in opening.consider(candidates, opened, rooms, now=now, check=check, starvation_seconds=starvation_seconds):
        told |= dict.fromkeys((demand.key for demand in it.candidate.demands), it)
    return told


def candidate(seen: Sequence[GroupSeen], domains: Domains) -> Candidate:
    """Gathered groups that open together."""
    demands = tuple(_demand(it) for it in seen)
    members = [it for each in seen for it in generation.waiting(each)]
    return Candidate(
        demands=demands,
        priority=max(it.priority for it in members),
        created=min(it.created for it in seen),
        since=max(_since(it) for it in seen),
        domain=domains.of([shape for demand in demands for shape in demand.shapes]),
        unmodelled=tuple(sorted({what for it in members for what in it.unmodelled})),
    )


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
        rest = [it for it in rest if now < it.opened_at + SURPLUS_SECONDS]
    rest += generation.passing(seen, record)
    short = max(0, record.minimum - generation.bound(seen, record.generation))
    sure = record.how is How.FIT
    found = (
        _still(seen.group.key, placed, len(placed), domains, proven=True),
        _still(seen.group.key, rest, short, domains, proven=sure, placed=record.satisfied is not None),
        None if forgotten or record.satisfied is not None else _missing(seen, short - len(rest), domains, proven=sure),
    )
    return (*(it for it in found if it is not None), *_strays(seen, bound, domains, now))


def _missing(seen: GroupSeen, short: int, domains: Domains, *, proven: bool) -> Opened | None:
    """Those that an open group lacks: who comes in the place of one that is gone needs room as the largest did."""
    shapes = _shapes(seen.members)
    if short <= 0 or not shapes or seen.record is None or seen.record.stage is not Stage.OPEN:
        return None
    largest = msgspec.structs.replace(max(shapes, key=lambda it: fit.size(it.requests)), count=short)
    demand = Demand(key=seen.group.key, shapes=(largest,), minimum=short)
    return Opened(demands=(demand,), domain=domains.of(shapes), proven=proven)


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
    rest = [it for it in strays if not it.node and not bound(it.uid) and since < it.opened_at <= now + CLOCKS_DIFFER]
    found = (
        _still(seen.group.key, placed, len(placed), domains, proven=True),
        _still(seen.group.key, rest, len(rest), domains, proven=False),
    )
    return tuple(it for it in found if it is not None)


def _still(key: Key, members: Sequence[MemberSeen], minimum: int, domains: Domains, **how: bool) -> Opened | None:
    shapes = _shapes(members)
    if not shapes:
        return None
    demand = Demand(key=key, shapes=shapes, minimum=minimum)
    return Opened(demands=(demand,), domain=domains.of(shapes), **how)


def _demand(seen: GroupSeen) -> Demand:
    group = seen.group
    there = generation.bound(seen, 0)
    return Demand(
        key=group.key,
        shapes=_shapes(generation.waiting(seen)),
        minimum=max(0, (group.minimum or 0) - there),
        resources=_amounts(group.resources),
    )


def _shapes(members: Iterable[MemberSeen]) -> tuple[Shape, ...]:
    """Members that are alike counted as one; mostly they share their shape, so that looking at it is not needed."""
    counted: dict[int, list[MemberSeen]] = {}
    for member in members:
        counted.setdefault(id(member.shape), []).append(member)
    return tuple(
        Shape(selection=alike[0].shape.selection, requests=alike[0].shape.requests, count=len(alike))
        for alike in counted.values()
    )


def _since(seen: GroupSeen) -> float:
    """When it had its minimum of members, or could be tried again."""
    created = sorted(it.created for it in seen.members if it.alive)
    minimum = seen.group.minimum or 1
    gathered = created[min(minimum, len(created)) - 1]
    return gathered if seen.record is None else max(gathered, seen.record.not_before)


def _gates(members: Iterable[MemberSeen]) -> tuple[str, ...]:
    """Gates on its members that are not ours."""
    return tuple(sorted({gate for it in members if it.gated and it.alive for gate in it.other_gates}))


def _given_up(record: Record | None) -> Standing | None:
    if record is None or record.retry:
        return None
    message = f"was taken back ({record.why}) and is not opened again until all of its pods are gone"
    return Standing(reason=names.REASON_TIMED_OUT, message=message)


def _backing_off(record: Record | None, now: float) -> Standing | None:
    if record is None or now >= record.not_before:
        return None
    times = "once" if record.rolled_back == 1 else f"{record.rolled_back} times"
    return Standing(reason=names.REASON_ROLLED_BACK, message=f"taken back {times}: {record.why}")


def _amounts(resources: tuple[tuple[str, Fraction], ...]) -> Amounts:
    return {name: ceil(amount * 1000) for name, amount in resources}


def _by_name(key: Key) -> tuple[str, str]:
    return key.path, key.design
