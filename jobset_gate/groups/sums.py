"""Whether groups ask for more than there is in all: all that is said of those too mixed to be placed (G3, Fit)."""

from collections.abc import Sequence

from jobset_gate.groups.certainty import Room
from jobset_gate.groups.fit import Demand, shown


def short(demands: Sequence[Demand], rooms: Sequence[Room]) -> str:
    """What there is too little of for the groups side by side, however their pods were placed; "": nothing is known of
    that kind, and they may have no room all the same.
    """
    free = _free(demands, rooms)
    for name, needed in _least(demands).items():
        have = free.get(name, 0)
        if have < needed:
            return f"needs at least {shown(name, needed)} {name}, {shown(name, have)} free"
    return ""


def _least(demands: Sequence[Demand]) -> dict[str, int]:
    """Of each resource what the minimum takes at least: of the pods that ask for the least; or what a PodGroup says."""
    least: dict[str, int] = {}
    for demand in demands:
        named = {name for shape in demand.shapes for name in shape.requests}
        for name in sorted(named | demand.resources.keys()):
            needed = max(_of_the_smallest(demand, name), demand.resources.get(name, 0))
            least[name] = least.get(name, 0) + needed
    return least


def _of_the_smallest(demand: Demand, name: str) -> int:
    left, needed = demand.minimum, 0
    for each, count in sorted((shape.requests.get(name, 0), shape.count) for shape in demand.shapes):
        many = min(count, left)
        left -= many
        needed += each * many
    return needed


def _free(demands: Sequence[Demand], rooms: Sequence[Room]) -> dict[str, int]:
    """On all nodes where any of their pods may go."""
    selections = {shape.selection for demand in demands for shape in demand.shapes}
    free: dict[str, int] = {}
    for room in rooms:
        if any(it.admits(room.node) for it in selections):
            for name, many in room.free.items():
                free[name] = free.get(name, 0) + max(0, many)
    return free
