"""What a starving group lacks, and which groups would take just that from it (G3).

kube-scheduler alone lets no pending pod hold back another. So a group that has waited too long holds back as few others
for as short a time as keeps it from being passed for ever.
"""

from collections.abc import Sequence
from typing import Final

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.candidate import Candidate
from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.greedy import GroupRequest
from jobset_gate.podgroups.fit.guaranteed import EquivalenceClass, NodeInfo, NodeSnapshot, PodShape, capacity

ROUND_PARTS: Final = 3
"""A wait goes in rounds of so many times starvationSeconds: one in which a group may be passed, two in which it may
not. With 300 s that is ten minutes, in which jobs of minutes end and free resources; a group that waits longer than
that mostly waits in vain."""

MIN_PART_SECONDS: Final = 1.0


class Shortage(Value, frozen=True):
    """What a group lacks for its own pods."""

    resources: frozenset[str]
    nodes: frozenset[str]
    """Nodes that could hold its pods if they were empty."""


def may_be_passed(candidate: Candidate, now: float, seconds: float) -> bool:
    """Whether later groups may take what it lacks: in the first part of each round."""
    return _part(candidate, now, seconds) == 0


def may_pass(candidate: Candidate, now: float, seconds: float) -> bool:
    """Whether no starving group holds it back: in the last part of each round."""
    return _part(candidate, now, seconds) == ROUND_PARTS - 1


def never_fits(candidate: Candidate, nodes: NodeSnapshot) -> bool:
    """Whether it would lack places on empty nodes, too: holding back others would not help it."""
    places: dict[EquivalenceClass, int] = {}
    for request in candidate.requests:
        own = {one: one.empty_places for one in map(nodes.equivalence_class, request.shapes)}
        if sum(own.values()) < request.minimum:
            return True
        places |= own
    return sum(places.values()) < sum(it.minimum for it in candidate.requests)


def shortage_of(requests: Sequence[GroupRequest], nodes: Sequence[NodeInfo]) -> Shortage | None:
    """What lacks on these nodes; None: each of its pods fits.

    Resources of its PodGroup beyond its pods do not count, since no pod takes them.
    """
    own = [GroupRequest(key=it.key, shapes=it.shapes, minimum=it.minimum) for it in requests]
    shapes = [shape for it in own for shape in it.shapes]
    near = [node for node in nodes if any(_could_be(shape, node) for shape in shapes)]
    named = {name for shape in shapes for name, many in shape.requests.items() if many > 0}
    lacking = {name for name in named if _lacks(own, name, near)}
    if not lacking and not greedy.fit_shortage(own, near):
        return None
    # If each alone would suffice, they are not free on the same nodes.
    return Shortage(resources=frozenset(lacking or named), nodes=frozenset(it.node.name for it in near))


def takes_from(candidate: Candidate, wanted: Shortage, nodes: NodeSnapshot) -> bool:
    """Whether one of its pods fits on one of those nodes and requests what lacks there."""
    shapes = (
        shape
        for request in candidate.requests
        for shape in request.shapes
        if any(shape.requests.get(name, 0) > 0 for name in wanted.resources)
    )
    return any(
        many > 0 and node.node.name in wanted.nodes
        for shape in shapes
        for many, node in zip(nodes.equivalence_class(shape).slots, nodes.nodes, strict=True)
    )


def _part(candidate: Candidate, now: float, seconds: float) -> int:
    return int(max(0.0, now - candidate.ready_since) // max(MIN_PART_SECONDS, seconds)) % ROUND_PARTS


def _could_be(shape: PodShape, node: NodeInfo) -> bool:
    return capacity(node.empty, shape.requests) > 0 and shape.selection.admits(node.node)


def _lacks(requests: Sequence[GroupRequest], name: str, nodes: Sequence[NodeInfo]) -> bool:
    """Whether a resource lacks even if each pod requested only the least that any of them does."""
    least, wanted = 0, 0
    for request in requests:
        asking = [(many, it.count) for it in request.shapes if (many := it.requests.get(name, 0)) > 0]
        others = sum(it.count for it in request.shapes) - sum(count for _, count in asking)
        wanted += max(0, request.minimum - others)
        least = min([many for many, _ in asking] + ([least] if least else []), default=least)
    return wanted > 0 and sum(max(0, node.free.get(name, 0)) // least for node in nodes) < wanted
