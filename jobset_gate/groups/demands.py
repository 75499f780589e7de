"""What gathered groups ask for, as one candidate if they open together: pods that are alike, minimum, rank (G3)."""

from collections.abc import Iterable, Sequence
from fractions import Fraction
from math import ceil
from typing import Final

from jobset_gate.groups import generation, requests
from jobset_gate.groups.anti_affinity import Mark
from jobset_gate.groups.candidates import Candidate
from jobset_gate.groups.certainty import Shape, alike
from jobset_gate.groups.domains import Domains
from jobset_gate.groups.fit import Demand
from jobset_gate.groups.generation import State
from jobset_gate.groups.requests import Amounts
from jobset_gate.groups.seen import GroupSeen, MemberSeen
from jobset_gate.groups.selection import Selection

MOST_KINDS: Final = 40
"""Of pods in what opens together, or of those that are being placed, for a closer look: each takes a millisecond."""

MIXED: Final = f"that its pods are of more than {MOST_KINDS} kinds"
TAKEN_BACK: Final = "what it was taken back for"


def candidate(seen: Sequence[GroupSeen], domains: Domains, *, backs_off: str = "") -> Candidate:
    """Gathered groups that open together. `backs_off`: why not yet."""
    members = [generation.ready(it) for it in seen]
    asked = [shapes(it, domains) for it in members]
    every = [shape for each in asked for shape in each]
    waiting = [it for each in members for it in each]
    its_marks = marks(waiting)
    mixed = len(alike(every)) > MOST_KINDS or len(its_marks) > MOST_KINDS
    return Candidate(
        demands=tuple(_demand(it, _least(each) if mixed else each) for it, each in zip(seen, asked, strict=True)),
        priority=max(it.priority for it in waiting),
        created=min(it.created for it in seen) if backs_off else _rank(seen),
        since=max(_since(it) for it in seen),
        domain=domains.of(every),
        unmodelled=_doubts(seen, waiting, domains, mixed=mixed, backs_off=bool(backs_off)),
        preempts=min(it.priority for it in waiting) if all(it.preempts for it in waiting) else None,
        marks=frozenset() if mixed else its_marks,
        backs_off=backs_off,
    )


def shapes(members: Iterable[MemberSeen], domains: Domains) -> tuple[Shape, ...]:
    """Members that are alike counted as one; mostly they share their shape, so that looking at it is not needed.

    Without what no node offers: who serves that is not known here.
    """
    counted: dict[int, list[MemberSeen]] = {}
    for member in members:
        counted.setdefault(id(member.shape), []).append(member)
    return tuple(
        Shape(selection=alike[0].shape.selection, requests=domains.offered(alike[0].shape.requests), count=len(alike))
        for alike in counted.values()
    )


def marks(members: Iterable[MemberSeen]) -> frozenset[Mark]:
    """What decides whether others keep them away."""
    return frozenset((it.namespace, it.labels) for it in members if it.labels is not None)


def _doubts(
    seen: Sequence[GroupSeen], members: Sequence[MemberSeen], domains: Domains, *, mixed: bool, backs_off: bool
) -> tuple[str, ...]:
    """What is not reckoned with, in words."""
    found = {what for it in members for what in it.unmodelled}
    found |= {f"{name}, which no node has," for it in members for name in domains.nowhere(it.shape.requests)}
    if any(it.labels is None for it in members):
        found.add("who keeps pods with so many labels away")
    if mixed:
        found.add(MIXED)
    if not backs_off and any(it.record is not None and it.record.rolled_back for it in seen):
        found.add(TAKEN_BACK)  # there was something that nobody had reckoned with
    return tuple(sorted(found))


def _demand(seen: GroupSeen, asked: tuple[Shape, ...]) -> Demand:
    group = seen.group
    there = generation.counted(seen)[State.PLACED]
    return Demand(
        key=group.key,
        shapes=asked,
        minimum=max(0, (group.minimum or 0) - generation.bound(seen)) if asked else 0,
        resources=_left(group.resources, there),
    )


def _least(asked: Sequence[Shape]) -> tuple[Shape, ...]:
    """Pods of many kinds as if each asked only for what all of them ask for that may go to the same nodes: where that
    has no room, they have none. () where there are too many kinds of that, too.
    """
    found: dict[Selection, Shape] = {}
    for it in asked:
        so_far = found.get(it.selection, Shape(selection=it.selection, requests=it.requests, count=0))
        least = {name: min(many, it.requests.get(name, 0)) for name, many in so_far.requests.items()}
        found[it.selection] = Shape(selection=it.selection, requests=least, count=so_far.count + it.count)
    return tuple(found.values()) if len(found) <= MOST_KINDS else ()


def _rank(seen: Sequence[GroupSeen]) -> float:
    """Its age, for the order; who was tried and taken back stands behind those that have waited meanwhile."""
    again = [it.record.not_before for it in seen if it.record is not None and it.record.rolled_back]
    return max(min(it.created for it in seen), *again, 0.0)


def _since(seen: GroupSeen) -> float:
    """When it had its minimum of members, or could be tried again."""
    created = sorted(it.created for it in generation.counted(seen).present)
    minimum = seen.group.minimum or 1
    gathered = created[min(minimum, len(created)) - 1]
    return gathered if seen.record is None else max(gathered, seen.record.not_before)


def _left(resources: tuple[tuple[str, Fraction], ...], there: Iterable[MemberSeen]) -> Amounts:
    """What its PodGroup asks for, less what its own pods have already."""
    left = {name: ceil(amount * 1000) for name, amount in resources}
    for member in there if left else ():
        left = requests.without(left, member.shape.requests)
    return {name: many for name, many in left.items() if many > 0}
