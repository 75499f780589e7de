"""Whether pods have room however the scheduler goes about it, without placing any of them (G3, Fit).

A pod of one shape can take the place of only so many pods of another: what the one asks for, over what the other asks
for, of the resource where that is most. If a shape has more places than all others together can take from it, and that
holds for every shape, no order of placing gets stuck.
"""

from collections.abc import Iterable, Sequence

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.fit.requests import Amounts
from jobset_gate.podgroups.fit.selection import NodeFacts, NodeSelection


class PodShape(Value, frozen=True):
    """Pods that are alike in all that decides about their place, and how many of them are to be placed."""

    selection: NodeSelection
    requests: Amounts
    count: int

    @property
    def equivalence_key(self) -> "EquivalenceKey":
        """The same for pods that are alike."""
        return self.selection, tuple(sorted(self.requests.items()))


EquivalenceKey = tuple[NodeSelection, tuple[tuple[str, int], ...]]


class NodeInfo(Value, frozen=True):
    """A node and what is free on it: allocatable, less what is bound and what is reserved."""

    node: NodeFacts
    free: Amounts
    empty: Amounts | None = None
    """What would be free if nothing were bound to it; None: not known."""
    used_by_priority: tuple[tuple[int, Amounts], ...] = ()
    """What is bound to it, by priority."""


class EquivalenceClass:
    """All pods that are alike: one object for them, so that looking one up by what it is like is done once."""

    __slots__ = ("_displaced", "places", "requests", "selection", "slots")

    def __init__(self, selection: NodeSelection, requests: Amounts, rooms: Sequence[NodeInfo]) -> None:
        self.selection, self.requests = selection, requests
        self.slots = [self._capacity_on(it) for it in rooms]
        self.places = sum(self.slots)
        """How many of them alone have room."""
        self._displaced: dict[EquivalenceClass, int] = {}

    def displaced_by(self, other: "EquivalenceClass") -> int:
        """How many of these may lose their place to one of the others: never more than this."""
        known = self._displaced.get(other)
        if known is None:
            known = self._displaced[other] = _most_displaced(other.requests, self.requests)
        return known

    def update_node(self, number: int, room: NodeInfo) -> None:
        """This node is different by now."""
        before, now = self.slots[number], self._capacity_on(room)
        self.slots[number] = now
        self.places += now - before

    def _capacity_on(self, room: NodeInfo) -> int:
        many = capacity(room.free, self.requests)
        return many if many and self.selection.admits(room.node) else 0


class NodeSnapshot:
    """The nodes; how many pods of a kind they have room for is reckoned once, and then for nodes that have changed."""

    def __init__(self, rooms: Sequence[NodeInfo] = ()) -> None:
        self.nodes = rooms
        self._kinds: dict[EquivalenceKey, EquivalenceClass] = {}
        self._used: set[EquivalenceKey] = set()
        self.changes = 0
        """How often the nodes were found different."""

    def refresh(self, rooms: Sequence[NodeInfo]) -> None:
        """The nodes as they are now: the same objects as before where nothing has changed.

        Kinds that nobody has asked for since the last time are forgotten.
        """
        before, self.nodes = self.nodes, rooms
        self._kinds = {like: kind for like, kind in self._kinds.items() if like in self._used}
        self._used.clear()
        if before is rooms:
            return
        self.changes += 1
        if [it.node.name for it in before] != [it.node.name for it in rooms]:
            self._kinds.clear()
            return
        changed = [number for number, (old, new) in enumerate(zip(before, rooms, strict=True)) if old is not new]
        for kind in self._kinds.values():
            for number in changed:
                kind.update_node(number, rooms[number])

    def equivalence_class(self, shape: PodShape) -> EquivalenceClass:
        """What these pods are."""
        like = shape.equivalence_key
        known = self._kinds.get(like)
        if known is None:
            known = self._kinds[like] = EquivalenceClass(shape.selection, shape.requests, self.nodes)
        self._used.add(like)
        return known

    def capacity(self, shape: PodShape) -> int:
        """How many pods of this shape alone have room."""
        return self.equivalence_class(shape).places

    def is_guaranteed(self, shapes: Iterable[PodShape], beside: Iterable[PodShape] = ()) -> bool:
        """Whether all pods have room whatever happens; those `beside` them need none, but take what they find."""
        ledger = Reservations(self)
        ledger.add_pods(beside, sure=False)
        return ledger.guarantees(shapes)


class Reservations:
    """Pods that are to be placed, added up as groups are opened, so that one more costs no look at all pairs again.

    Of each kind so many as have places at all can take a place from others. `_load` is how many places of a kind that
    needs them may be lost to others.
    """

    def __init__(self, ground: NodeSnapshot) -> None:
        self._ground = ground
        self._sure: dict[EquivalenceClass, int] = {}
        self._unsure: dict[EquivalenceClass, int] = {}
        self._load: dict[EquivalenceClass, int] = {}

    @property
    def empty(self) -> bool:
        """Nothing is to be placed."""
        return not self._sure and not self._unsure

    def add_pods(self, shapes: Iterable[PodShape], *, sure: bool) -> None:
        """These are to be placed as well; those that are not sure need no place, but take what they find."""
        for shape in shapes:
            self._add(self._ground.equivalence_class(shape), shape.count, sure=sure)

    def guarantees(self, shapes: Iterable[PodShape]) -> bool:
        """Whether all that are sure, and these too, have room whatever happens."""
        more: dict[EquivalenceClass, int] = {}
        for shape in shapes:
            kind = self._ground.equivalence_class(shape)
            more[kind] = more.get(kind, 0) + shape.count
        grown = {kind: _capped(kind, self._sure.get(kind, 0) + many) for kind, many in more.items()}
        before = {kind: _capped(kind, self._sure.get(kind, 0)) for kind in more}
        for kind, many in more.items():
            others = sum(kind.displaced_by(it) * (grown[it] - before[it]) for it in more if it is not kind)
            if kind.places < self._sure.get(kind, 0) + many + self._current_load(kind) + others:
                return False
        return all(
            kind.places
            >= many + self._load[kind] + sum(kind.displaced_by(it) * (grown[it] - before[it]) for it in more)
            for kind, many in self._sure.items()
            if kind not in more
        )

    def _current_load(self, kind: EquivalenceClass) -> int:
        known = self._load.get(kind)
        if known is not None:
            return known
        sure = sum(kind.displaced_by(it) * _capped(it, many) for it, many in self._sure.items() if it is not kind)
        return sure + sum(kind.displaced_by(it) * _capped(it, many) for it, many in self._unsure.items())

    def _add(self, kind: EquivalenceClass, count: int, *, sure: bool) -> None:
        many = self._sure if sure else self._unsure
        if sure and kind not in self._load:
            self._load[kind] = self._current_load(kind)
        before = many.get(kind, 0)
        many[kind] = before + count
        grown = _capped(kind, before + count) - _capped(kind, before)
        if grown:
            for other in self._load:
                if other is not kind or not sure:
                    self._load[other] += other.displaced_by(kind) * grown


def _capped(kind: EquivalenceClass, many: int) -> int:
    """More than have places cannot take any."""
    return min(many, kind.places)


def group_equal(shapes: Iterable[PodShape]) -> list[PodShape]:
    """The same pods with one shape for all that are alike."""
    found: dict[EquivalenceKey, PodShape] = {}
    for shape in shapes:
        key = shape.equivalence_key
        before = found.get(key)
        count = shape.count if before is None else shape.count + before.count
        found[key] = PodShape(selection=shape.selection, requests=shape.requests, count=count)
    return list(found.values())


def capacity(free: Amounts, asked: Amounts) -> int:
    """How many pods of a kind a node has room for."""
    return max(0, min((free.get(name, 0) // many for name, many in asked.items() if many > 0), default=0))


def _most_displaced(other: Amounts, asked: Amounts) -> int:
    """How many pods of one kind may lose their place to one pod of another: never more than this."""
    return max((-(-other.get(name, 0) // many) for name, many in asked.items() if many > 0), default=0)
