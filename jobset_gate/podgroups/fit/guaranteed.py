"""Order-independent fit: do pods have room whatever order and nodes the scheduler chooses, without simulating it (G3).

A pod of one equivalence class can take the place of only so many pods of another: the ratio of their requests, for the
resource where it is largest. If every class has more places than the other classes together can take from it, no order
of binding leaves a pod without a node.
"""

from collections.abc import Iterable, Sequence

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.fit.constraints import Amounts, NodeFacts, NodeSelection


class PodShape(Value, frozen=True):
    """Pods that are equal in all that decides about their node, and how many of them are to be bound."""

    selection: NodeSelection
    requests: Amounts
    count: int

    @property
    def equivalence_key(self) -> "EquivalenceKey":
        """The same for pods of one equivalence class."""
        return self.selection, tuple(sorted(self.requests.items()))


EquivalenceKey = tuple[NodeSelection, tuple[tuple[str, int], ...]]


class NodeInfo(Value, frozen=True):
    """A node and its free resources: allocatable, less those of bound pods."""

    node: NodeFacts
    free: Amounts
    empty: Amounts
    """Free resources if no pod were bound to it but those of DaemonSets and static ones."""
    used_by_priority: tuple[tuple[int, Amounts], ...] = ()
    """Of bound pods, the lowest priority first."""


class EquivalenceClass:
    """One object for all equal pods, so that their places on each node are counted once."""

    __slots__ = ("_displaced", "_empty_slots", "_nodes", "places", "requests", "selection", "slots")

    def __init__(self, selection: NodeSelection, requests: Amounts, nodes: Sequence[NodeInfo]) -> None:
        self.selection, self.requests, self._nodes = selection, requests, list(nodes)
        self.slots = [self._capacity_on(it, it.free) for it in nodes]
        """Pods of the class that fit on each node."""
        self.places = sum(self.slots)
        self._empty_slots: list[int] | None = None
        self._displaced: dict[EquivalenceClass, int] = {}

    @property
    def empty_places(self) -> int:
        """Pods of the class that would fit on empty nodes."""
        if self._empty_slots is None:
            self._empty_slots = [self._capacity_on(it, it.empty) for it in self._nodes]
        return sum(self._empty_slots)

    def displaced_by(self, other: "EquivalenceClass") -> int:
        """Upper bound of the pods of this class that one pod of the other can displace."""
        known = self._displaced.get(other)
        if known is None:
            known = self._displaced[other] = _most_displaced(other.requests, self.requests)
        return known

    def update_node(self, number: int, node: NodeInfo) -> None:
        before, now = self.slots[number], self._capacity_on(node, node.free)
        self.slots[number] = now
        self.places += now - before
        if self._empty_slots is not None:
            self._empty_slots[number] = self._capacity_on(node, node.empty)
        self._nodes[number] = node

    def _capacity_on(self, node: NodeInfo, free: Amounts) -> int:
        many = capacity(free, self.requests)
        return many if many and self.selection.admits(node.node) else 0


class NodeSnapshot:
    """The nodes, and the places of each equivalence class, updated for changed nodes only."""

    def __init__(self, nodes: Sequence[NodeInfo] = ()) -> None:
        self.nodes = nodes
        self._classes: dict[EquivalenceKey, EquivalenceClass] = {}
        self._used: set[EquivalenceKey] = set()

    def refresh(self, nodes: Sequence[NodeInfo]) -> None:
        """`nodes`: the same objects as before where nothing has changed. Classes not used since the last refresh go."""
        before, self.nodes = self.nodes, nodes
        self._classes = {key: it for key, it in self._classes.items() if key in self._used}
        self._used.clear()
        if before is nodes:
            return
        if [it.node.name for it in before] != [it.node.name for it in nodes]:
            self._classes.clear()
            return
        changed = [number for number, (old, new) in enumerate(zip(before, nodes, strict=True)) if old is not new]
        for one in self._classes.values():
            for number in changed:
                one.update_node(number, nodes[number])

    def equivalence_class(self, shape: PodShape) -> EquivalenceClass:
        key = shape.equivalence_key
        known = self._classes.get(key)
        if known is None:
            known = self._classes[key] = EquivalenceClass(shape.selection, shape.requests, self.nodes)
        self._used.add(key)
        return known

    def capacity(self, shape: PodShape) -> int:
        """How many pods of this shape alone fit."""
        return self.equivalence_class(shape).places


class Reservations:
    """Pods to be bound, added up group by group, so that adding one more does not compare all pairs again.

    At most as many pods of a class as it has places can displace others. `_load`: the places of a required class that
    pods of other classes may take.
    """

    def __init__(self, nodes: NodeSnapshot) -> None:
        self._nodes = nodes
        self._required: dict[EquivalenceClass, int] = {}
        self._optional: dict[EquivalenceClass, int] = {}
        self._load: dict[EquivalenceClass, int] = {}

    @property
    def empty(self) -> bool:
        """No pod is to be bound."""
        return not self._required and not self._optional

    def add_pods(self, shapes: Iterable[PodShape], *, required: bool) -> None:
        """More pods to be bound; no room is kept for those that are not required, but they may be bound first."""
        for shape in shapes:
            self._add(self._nodes.equivalence_class(shape), shape.count, required=required)

    def guarantees(self, shapes: Iterable[PodShape]) -> bool:
        """Whether all required pods, and these too, fit in any order."""
        more: dict[EquivalenceClass, int] = {}
        for shape in shapes:
            one = self._nodes.equivalence_class(shape)
            more[one] = more.get(one, 0) + shape.count
        grown = {
            it: _capped(it, self._required.get(it, 0) + many) - _capped(it, self._required.get(it, 0))
            for it, many in more.items()
        }
        for one, many in more.items():
            others = sum(one.displaced_by(it) * grown[it] for it in more if it is not one)
            if one.places < self._required.get(one, 0) + many + self._current_load(one) + others:
                return False
        return all(
            one.places >= many + self._load[one] + sum(one.displaced_by(it) * grown[it] for it in more)
            for one, many in self._required.items()
            if one not in more
        )

    def _current_load(self, one: EquivalenceClass) -> int:
        known = self._load.get(one)
        if known is not None:
            return known
        required = sum(one.displaced_by(it) * _capped(it, many) for it, many in self._required.items() if it is not one)
        return required + sum(one.displaced_by(it) * _capped(it, many) for it, many in self._optional.items())

    def _add(self, one: EquivalenceClass, count: int, *, required: bool) -> None:
        pods = self._required if required else self._optional
        if required and one not in self._load:
            self._load[one] = self._current_load(one)
        before = pods.get(one, 0)
        pods[one] = before + count
        grown = _capped(one, before + count) - _capped(one, before)
        if grown:
            for other in self._load:
                if other is not one or not required:
                    self._load[other] += other.displaced_by(one) * grown


def _capped(one: EquivalenceClass, count: int) -> int:
    """Pods without a place displace no other."""
    return min(count, one.places)


def group_equal(shapes: Iterable[PodShape]) -> list[PodShape]:
    """The same pods with one shape for each equivalence class."""
    found: dict[EquivalenceKey, PodShape] = {}
    for shape in shapes:
        key = shape.equivalence_key
        before = found.get(key)
        count = shape.count if before is None else shape.count + before.count
        found[key] = PodShape(selection=shape.selection, requests=shape.requests, count=count)
    return list(found.values())


def capacity(free: Amounts, requests: Amounts) -> int:
    """How many pods with these requests fit into the free resources of a node."""
    return max(0, min((free.get(name, 0) // many for name, many in requests.items() if many > 0), default=0))


def _most_displaced(other: Amounts, requests: Amounts) -> int:
    return max((-(-other.get(name, 0) // many) for name, many in requests.items() if many > 0), default=0)
