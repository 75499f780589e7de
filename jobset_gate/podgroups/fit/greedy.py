"""Greedy fit: do groups fit on the nodes, which room is left, and what they lack otherwise (G3).

Pods of one shape are placed on node after node. With one shape that is exact: the number that fits does not depend on
the order. With several shapes the scheduler may bind small pods where large ones should have gone; then `guaranteed`
answers whether the fit is certain.
"""

from collections.abc import Sequence
from types import MappingProxyType

import msgspec

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.fit.constraints import PODS, Amounts, format_amount, scarcity
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, PodShape, capacity, group_equal
from jobset_gate.podgroups.model import PodGroupKey


class GroupRequest(Value, frozen=True):
    """What one group needs: so many of its pods bound, and the resources that its PodGroup names free in total."""

    key: PodGroupKey
    shapes: tuple[PodShape, ...]
    minimum: int
    resources: Amounts = MappingProxyType({})


def fit_shortage(requests: Sequence[GroupRequest], nodes: Sequence[NodeInfo], first: Sequence[PodShape] = ()) -> str:
    """What lacks for groups that are admitted together; "": they fit. Pods that come `first` are placed before, as far
    as they fit.
    """
    return _first_shortage(_Placement(nodes, first), requests)


def without_lower_priority(nodes: Sequence[NodeInfo], priority: int) -> list[NodeInfo]:
    """The nodes if no pod of lower priority were bound to them; the same objects where none is."""
    return [
        _without_lower(it, priority) if it.used_by_priority and it.used_by_priority[0][0] < priority else it
        for it in nodes
    ]


def _without_lower(node: NodeInfo, priority: int) -> NodeInfo:
    free = dict(node.free)
    for rank, used in node.used_by_priority:
        if rank < priority:
            free |= {name: free.get(name, 0) + many for name, many in used.items()}
    return msgspec.structs.replace(node, free=free)


def never_fits(requests: Sequence[GroupRequest], nodes: Sequence[NodeInfo]) -> str:
    """Why the groups would not fit on empty nodes; "": they would."""
    empty = [msgspec.structs.replace(it, free=it.empty) for it in nodes]
    return _first_shortage(_Placement(empty, empty=True), requests)


def after_placing(nodes: Sequence[NodeInfo], first: Sequence[PodShape]) -> list[NodeInfo]:
    """The nodes with what is left once these pods are placed."""
    free = _Placement(nodes, first).free
    return [msgspec.structs.replace(it, free=free[it.node.name]) for it in nodes]


class _Placement:
    """The nodes while pods are placed on them."""

    def __init__(self, nodes: Sequence[NodeInfo], first: Sequence[PodShape] = (), *, empty: bool = False) -> None:
        """`first`: pods of other groups, placed as far as they fit. `empty`: without the pods that are bound to the
        nodes, for the words of a shortage.
        """
        self._nodes, self._empty = nodes, empty
        self.free = {it.node.name: dict(it.free) for it in nodes}
        for shape in _scarcest_first(group_equal(first)):
            self._place(shape, shape.count)
        self._before = {name: dict(free) for name, free in self.free.items()}
        self._requested: list[GroupRequest] = []

    def place_group(self, request: GroupRequest) -> str:
        """Places a group; else what it lacks."""
        self._requested.append(request)
        if request.resources and (short := self._lacking(request.resources, request.shapes)):
            return short
        placed = 0
        for shape in _scarcest_first(request.shapes):
            placed += self._place(shape, min(shape.count, request.minimum - placed))
        return "" if placed >= request.minimum else self._shortage(request, placed)

    def _place(self, shape: PodShape, count: int) -> int:
        left = count
        for it in self._nodes:
            if left <= 0:
                break
            free = self.free[it.node.name]
            many = min(left, capacity(free, shape.requests))
            if many > 0 and shape.selection.admits(it.node):
                for name, amount in shape.requests.items():
                    free[name] = free.get(name, 0) - amount * many
                left -= many
        return count - left

    def _shortage(self, request: GroupRequest, placed: int) -> str:
        """Of this group and those placed before it together."""
        needed: dict[str, int] = {}
        for it in self._requested:
            for name, many in _needed(it).items():
                needed[name] = needed.get(name, 0) + many
        if lacking := self._lacking(needed, [shape for it in self._requested for shape in it.shapes]):
            return lacking
        counted = f"{placed} of {request.minimum} pods"
        if self._empty:
            return f"{counted} would have room if they were empty"
        return f"{counted} have room: what is free is spread over too many nodes"

    def _lacking(self, needed: Amounts, shapes: Sequence[PodShape]) -> str:
        """The first resource that lacks in total, on the nodes that admit any of these pods."""
        free = self._free_for(shapes)
        for name, many in needed.items():
            have = free.get(name, 0)
            if have < many and self._empty:
                return f"the whole domain has {format_amount(name, have)} {name}"
            if have < many:
                return f"needs {format_amount(name, many)} {name}, {format_amount(name, have)} free"
        return ""

    def _free_for(self, shapes: Sequence[PodShape]) -> dict[str, int]:
        """What was free before these groups, on nodes that admit any of these pods."""
        total: dict[str, int] = {}
        for node in self._nodes:
            if any(it.selection.admits(node.node) for it in shapes):
                for name, many in self._before[node.node.name].items():
                    total[name] = total.get(name, 0) + max(0, many)
        return total


def _first_shortage(placement: _Placement, requests: Sequence[GroupRequest]) -> str:
    return next(filter(None, map(placement.place_group, requests)), "")


def _needed(request: GroupRequest) -> dict[str, int]:
    """The requests of as many pods as the minimum, the largest first, but for the number of pods."""
    left, needed = request.minimum, dict[str, int]()
    for shape in _scarcest_first(request.shapes):
        many = min(shape.count, left)
        left -= many
        for name, amount in shape.requests.items():
            needed[name] = needed.get(name, 0) + amount * many
    return {name: many for name, many in needed.items() if name != PODS}


def _scarcest_first(shapes: Sequence[PodShape]) -> list[PodShape]:
    return sorted(shapes, key=lambda it: scarcity(it.requests), reverse=True)
