"""Whether groups have room on the nodes, which room, and what they lack otherwise (G3, Fit).

Pods of one shape are placed as many as fit on node after node. With one shape that is exact: whoever is bound where,
the number that fits is the same. With several, the scheduler may put small pods where large ones should have gone; then
the room is certain only if `certainty` says so.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

import msgspec

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.fit import requests
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape, capacity, group_equal
from jobset_gate.podgroups.fit.requests import Amounts
from jobset_gate.podgroups.fit.selection import NodeFacts
from jobset_gate.podgroups.model import PodGroupKey

MAX_SELECTOR_CHECKS: Final = 200_000
"""For one domain: some 50 ms in which nobody else has a turn."""

_BYTES: Final = ("memory", "ephemeral-storage")


class GroupRequest(Value, frozen=True):
    """What one group needs: so many of its pods placed; and the amounts that its PodGroup names, free in all."""

    key: PodGroupKey
    shapes: tuple[PodShape, ...]
    minimum: int
    resources: Amounts = MappingProxyType({})


class FitResult(Value, frozen=True):
    """The answer for groups that open together."""

    fits: bool
    guaranteed: bool
    """However the scheduler places them."""
    shortage: str = ""
    """What there is too little of, for people."""


def check_fit(
    demands: Sequence[GroupRequest],
    ground: NodeSnapshot,
    first: Sequence[PodShape] = (),
    beside: Sequence[PodShape] = (),
) -> FitResult:
    """Whether all of the groups have room, side by side.

    Those that come `first` have their places, as far as there are any; those `beside` need none, but take what they
    find.
    """
    shapes = [shape for demand in demands for shape in demand.shapes]
    alone = len(shapes) == 1 and not first and not beside
    certain = alone or ground.is_guaranteed([*first, *shapes], beside)
    placing = _Placement(ground.nodes)
    placing.place_reserved(first)
    for demand in demands:
        lacks = placing.place_group(demand)
        if lacks:
            return FitResult(fits=False, guaranteed=False, shortage=lacks)
    return FitResult(fits=True, guaranteed=certain)


def without_lower_priority(rooms: Sequence[NodeInfo], priority: int) -> list[NodeInfo]:
    """The nodes if nothing of lower priority were bound to them; the same objects where nothing is."""
    return [
        _without_lower(it, priority) if it.used_by_priority and it.used_by_priority[0][0] < priority else it
        for it in rooms
    ]


def _without_lower(room: NodeInfo, priority: int) -> NodeInfo:
    free = dict(room.free)
    for rank, taken in room.used_by_priority:
        if rank < priority:
            free |= {name: free.get(name, 0) + many for name, many in taken.items()}
    return msgspec.structs.replace(room, free=free)


def never_fits(demands: Sequence[GroupRequest], rooms: Sequence[NodeInfo]) -> str:
    """Why the groups would have no room even if nothing were bound to these nodes; "": they would, or nobody knows."""
    if any(it.empty is None for it in rooms):
        return ""
    placing = _Placement([msgspec.structs.replace(it, free=it.empty) for it in rooms], _EMPTY)
    lacks = (placing.place_group(it) for it in demands)
    return next(filter(None, lacks), "")


def after_placing(rooms: Sequence[NodeInfo], first: Sequence[PodShape]) -> list[NodeInfo]:
    """The nodes with what is left when these have their places."""
    placing = _Placement(rooms)
    placing.place_reserved(first)
    return [msgspec.structs.replace(it, free=placing.free(it.node.name)) for it in rooms]


def matching_nodes(shapes: Sequence[PodShape], nodes: Sequence[NodeFacts]) -> frozenset[str]:
    """The nodes that the pods' required selection matches, whether they have room or not.

    All nodes, where finding out would take others' time: then the pods only share their domain with more groups.
    """
    selections = {it.selection for it in shapes}
    if len(nodes) * sum(it.requirement_count for it in selections) > MAX_SELECTOR_CHECKS:
        return frozenset(node.name for node in nodes)
    return frozenset(node.name for node in nodes if any(it.matches(node) for it in selections))


class _ShortageText(Value, frozen=True):
    """How it is told what there is too little of."""

    amount: str
    spread: str


_BOUND: Final = _ShortageText(
    amount="needs {needed} {name}, {have} free",
    spread="{placed} of {minimum} pods have room: what is free is spread over too many nodes",
)
_EMPTY: Final = _ShortageText(
    amount="the whole domain has {have} {name}", spread="{placed} of {minimum} pods would have room if they were empty"
)


class _Placement:
    """The nodes while pods are put on them."""

    def __init__(self, rooms: Sequence[NodeInfo], words: _ShortageText = _BOUND) -> None:
        self._rooms, self._words = rooms, words
        self._free = {it.node.name: dict(it.free) for it in rooms}
        self._before: Mapping[str, Amounts] = {it.node.name: it.free for it in rooms}
        self._asked: list[GroupRequest] = []

    def free(self, node: str) -> Amounts:
        """What is left there."""
        return self._free[node]

    def place_reserved(self, shapes: Sequence[PodShape]) -> None:
        """Places others' pods, as many as have room."""
        for shape in sorted(group_equal(shapes), key=lambda it: scarcity(it.requests), reverse=True):
            self._place(shape, shape.count)
        self._before = {name: dict(free) for name, free in self._free.items()}

    def place_group(self, demand: GroupRequest) -> str:
        """Places a group; else says what it lacks."""
        self._asked.append(demand)
        short = self._short_in_all(demand)
        if short:
            return short
        to_place, placed = demand.minimum, 0
        for shape in sorted(demand.shapes, key=lambda it: scarcity(it.requests), reverse=True):
            placed += self._place(shape, min(shape.count, to_place - placed))
        return "" if placed >= to_place else self._shortage(demand, placed)

    def _place(self, shape: PodShape, count: int) -> int:
        left = count
        for room in self._rooms:
            if left <= 0:
                break
            free = self._free[room.node.name]
            many = min(left, capacity(free, shape.requests))
            if many > 0 and shape.selection.admits(room.node):
                self._take(room.node.name, shape.requests, many)
                left -= many
        return count - left

    def _take(self, node: str, asked: Amounts, many: int) -> None:
        free = self._free[node]
        for name, amount in asked.items():
            free[name] = free.get(name, 0) - amount * many

    def _short_in_all(self, demand: GroupRequest) -> str:
        """Of what the PodGroup names, too little on the nodes that any of its pods may use."""
        free = self._free_for(demand.shapes)
        for name, needed in demand.resources.items():
            if free.get(name, 0) < needed:
                return self._amount(name, needed, free.get(name, 0))
        return ""

    def _shortage(self, demand: GroupRequest, placed: int) -> str:
        free = self._free_for([shape for it in self._asked for shape in it.shapes])
        needed: dict[str, int] = {}
        for it in self._asked:  # those before this one have taken theirs
            for name, taken in self._needed(it).items():
                needed[name] = needed.get(name, 0) + taken
        for name, taken in needed.items():
            have = free.get(name, 0)
            if name != requests.PODS and have < taken:
                return self._amount(name, taken, have)
        return self._words.spread.format(placed=placed, minimum=demand.minimum)

    def _amount(self, name: str, needed: int, have: int) -> str:
        return self._words.amount.format(name=name, needed=format_amount(name, needed), have=format_amount(name, have))

    def _needed(self, demand: GroupRequest) -> dict[str, int]:
        """What is asked for by as many pods as the minimum, the largest first."""
        left, needed = demand.minimum, dict[str, int]()
        for shape in sorted(demand.shapes, key=lambda it: scarcity(it.requests), reverse=True):
            many = min(shape.count, left)
            left -= many
            for name, amount in shape.requests.items():
                needed[name] = needed.get(name, 0) + amount * many
        return needed

    def _free_for(self, shapes: Sequence[PodShape]) -> dict[str, int]:
        """What was free before these groups, on nodes where any of its pods may go."""
        total: dict[str, int] = {}
        for room in self._rooms:
            if any(it.selection.admits(room.node) for it in shapes):
                for name, many in self._before[room.node.name].items():
                    total[name] = total.get(name, 0) + max(0, many)
        return total


def scarcity(asked: Amounts) -> tuple[int, ...]:
    """Devices before memory before processors: what is scarcest is placed first."""
    scarce = sum(many for name, many in asked.items() if name not in ("cpu", requests.PODS, *_BYTES))
    return scarce, asked.get("memory", 0), asked.get("cpu", 0)


def format_amount(name: str, thousandths: int) -> str:
    """An amount as people write it."""
    number = f"{thousandths / 1000:.10g}"
    return f"{thousandths / 1000 / 2**30:.4g}Gi" if name in _BYTES and thousandths else number
