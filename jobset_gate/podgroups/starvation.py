"""What a group that has waited too long is short of, and who would take just that from it (G3).

Without us a pod that finds no place holds up nobody, so whoever is held back for another is held back for as little,
and for as long, as keeps the other from being passed for ever.
"""

from collections.abc import Sequence
from typing import Final

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.candidate import Candidate
from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape, capacity

ROUND_PARTS: Final = 3
"""A wait goes in rounds of so many times starvationSeconds: one in which a group may be passed, two in which it may
not. With 300 s that is ten minutes, in which jobs of minutes end and leave room; longer than that a group is waited
for in vain, more often than not."""

MIN_PART_SECONDS: Final = 1.0
"""Seconds of a part."""


class Shortage(Value, frozen=True):
    """What a group has too little of, for its own pods."""

    resources: frozenset[str]
    nodes: frozenset[str]
    """Where its pods could be if nothing else were there."""


def may_be_passed(candidate: Candidate, now: float, seconds: float) -> bool:
    """Whether it is not its turn to be waited for."""
    return _part(candidate, now, seconds) == 0


def may_pass(candidate: Candidate, now: float, seconds: float) -> bool:
    """Whether it was held back for others for long enough: in the last part of each round nobody holds it back."""
    return _part(candidate, now, seconds) == ROUND_PARTS - 1


def shortage_of(demands: Sequence[GroupRequest], rooms: Sequence[NodeInfo]) -> Shortage | None:
    """What is lacking on these nodes; None: each of its pods has room.

    What a PodGroup asks for beyond its pods is not counted, since nobody is charged for that.
    """
    own = [GroupRequest(key=it.key, shapes=it.shapes, minimum=it.minimum) for it in demands]
    shapes = [shape for it in own for shape in it.shapes]
    near = [room for room in rooms if any(_could_be(shape, room) for shape in shapes)]
    named = {name for shape in shapes for name, many in shape.requests.items() if many > 0}
    lacking = {name for name in named if _lacks(own, name, near)}
    if not lacking and greedy.check_fit(own, NodeSnapshot(near)).fits:
        return None
    # Where none is lacking by itself, it is that they are not free on the same nodes.
    return Shortage(resources=frozenset(lacking or named), nodes=frozenset(it.node.name for it in near))


def takes_from(candidate: Candidate, wanted: Shortage, ground: NodeSnapshot) -> bool:
    """Whether one of its pods may come to one of those nodes, and asks for what is lacking there."""
    asking = (
        shape
        for demand in candidate.requests
        for shape in demand.shapes
        if any(shape.requests.get(name, 0) > 0 for name in wanted.resources)
    )
    return any(
        many > 0 and room.node.name in wanted.nodes
        for shape in asking
        for many, room in zip(ground.equivalence_class(shape).slots, ground.nodes, strict=True)
    )


def _part(candidate: Candidate, now: float, seconds: float) -> int:
    return int(max(0.0, now - candidate.ready_since) // max(MIN_PART_SECONDS, seconds)) % ROUND_PARTS


def _could_be(shape: PodShape, room: NodeInfo) -> bool:
    return (room.empty is None or capacity(room.empty, shape.requests) > 0) and shape.selection.admits(room.node)


def _lacks(demands: Sequence[GroupRequest], name: str, rooms: Sequence[NodeInfo]) -> bool:
    """Whether there is too little of a resource, even if each pod asked only for the least that any of them does."""
    least, wanted = 0, 0
    for demand in demands:
        asked = [(many, it.count) for it in demand.shapes if (many := it.requests.get(name, 0)) > 0]
        others = sum(it.count for it in demand.shapes) - sum(count for _, count in asked)
        wanted += max(0, demand.minimum - others)
        least = min([many for many, _ in asked] + ([least] if least else []), default=least)
    return wanted > 0 and sum(max(0, room.free.get(name, 0)) // least for room in rooms) < wanted
