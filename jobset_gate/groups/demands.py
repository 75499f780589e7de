"""What gathered groups ask for, as one candidate if they open together: pods that are alike, minimum, rank (G3)."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil

from jobset_gate.groups import generation
from jobset_gate.groups.candidates import Candidate
from jobset_gate.groups.certainty import Shape
from jobset_gate.groups.domains import Domains
from jobset_gate.groups.fit import Demand
from jobset_gate.groups.requests import Amounts
from jobset_gate.groups.seen import GroupSeen, MemberSeen


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
        preempts=min(it.priority for it in members) if all(it.preempts for it in members) else None,
    )


def _demand(seen: GroupSeen) -> Demand:
    group = seen.group
    there = generation.bound(seen, 0)
    return Demand(
        key=group.key,
        shapes=shapes(generation.waiting(seen)),
        minimum=max(0, (group.minimum or 0) - there),
        resources=_amounts(group.resources),
    )


def shapes(members: Iterable[MemberSeen]) -> tuple[Shape, ...]:
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


def _amounts(resources: tuple[tuple[str, Fraction], ...]) -> Amounts:
    return {name: ceil(amount * 1000) for name, amount in resources}
