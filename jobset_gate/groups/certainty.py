"""Whether pods have room however the scheduler goes about it, without placing any of them (G3, Fit).

A pod of one shape can take the place of only so many pods of another: what the one asks for, over what the other asks
for, of the resource where that is most. If a shape has more places than all others together can take from it, and that
holds for every shape, no order of placing gets stuck.
"""

from collections.abc import Iterable, Sequence

from jobset_gate.groups.requests import Amounts
from jobset_gate.groups.selection import Node, Selection
from jobset_gate.model import Word


class Shape(Word, frozen=True):
    """Pods that are alike in all that decides about their place, and how many of them are to be placed."""

    selection: Selection
    requests: Amounts
    count: int

    @property
    def likeness(self) -> "Likeness":
        """The same for pods that are alike."""
        return self.selection, tuple(sorted(self.requests.items()))


Likeness = tuple[Selection, tuple[tuple[str, int], ...]]


class Room(Word, frozen=True):
    """A node and what is free on it: allocatable, less what is bound and what is reserved."""

    node: Node
    free: Amounts


class Ground:
    """The nodes of one decision; how many pods of a shape they have room for is reckoned once."""

    def __init__(self, rooms: Sequence[Room]) -> None:
        """`rooms` are not to change while this is in use."""
        self.rooms = rooms
        self._capacities: dict[Likeness, int] = {}

    def capacity(self, shape: Shape) -> int:
        """How many pods of this shape alone have room."""
        known = self._capacities.get(shape.likeness)
        if known is None:
            free = (it.free for it in self.rooms if shape.selection.admits(it.node))
            known = sum(capacity(it, shape.requests) for it in free)
            self._capacities[shape.likeness] = known
        return known

    def certain(self, shapes: Iterable[Shape], beside: Iterable[Shape] = ()) -> bool:
        """Whether all pods have room whatever happens; those `beside` them need none, but take what they find."""
        wanted, others = alike(shapes), alike(beside)
        most = [(it, min(it.count, self.capacity(it))) for it in (*wanted, *others)]
        for shape in wanted:
            harm = sum(many * _harm(it.requests, shape.requests) for it, many in most if it is not shape)
            if self.capacity(shape) - harm < shape.count:
                return False
        return True


def alike(shapes: Iterable[Shape]) -> list[Shape]:
    """The same pods with one shape for all that are alike."""
    found: dict[Likeness, Shape] = {}
    for shape in shapes:
        key = shape.likeness
        before = found.get(key)
        count = shape.count if before is None else shape.count + before.count
        found[key] = Shape(selection=shape.selection, requests=shape.requests, count=count)
    return list(found.values())


def capacity(free: Amounts, asked: Amounts) -> int:
    """How many pods of a kind a node has room for."""
    return max(0, min((free.get(name, 0) // many for name, many in asked.items() if many > 0), default=0))


def _harm(other: Amounts, asked: Amounts) -> int:
    """How many pods of one kind may lose their place to one pod of another: never more than this."""
    return max((-(-other.get(name, 0) // many) for name, many in asked.items() if many > 0), default=0)
