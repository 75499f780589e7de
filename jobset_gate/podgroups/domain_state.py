"""What has become of the groups of each domain in one pass, and of those whose domains share nodes with it (G3)."""

from collections.abc import Iterable, Sequence
from typing import Final

from jobset_gate.podgroups.candidate import AdmittedGroup, Candidate, admission_order
from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape, Reservations, group_equal

MAX_STARVING_KINDS: Final = 40
"""Kinds of pods of those that others of one domain are held back for: what they lack takes a millisecond for each."""


class DomainState:
    """What has become of the groups of one domain so far."""

    def __init__(self) -> None:
        self.held: Candidate | None = None
        self.starved: dict[object, Candidate] = {}
        """By what they are like, in order: those that are alike lack the same."""
        self.probing: list[AdmittedGroup] = []
        """Those that have the one place for groups that are not sure of theirs."""
        self.book: list[tuple[Sequence[PodShape], bool]] = []
        """Pods that are to be placed, and whether they need to be."""

    def add_starving(self, like: object, candidate: Candidate) -> None:
        """It has waited too long to be passed."""
        kinds = sum(len(demand.shapes) for it in (*self.starved.values(), candidate) for demand in it.requests)
        if kinds <= MAX_STARVING_KINDS:
            self.starved.setdefault(like, candidate)

    def add_admitted(self, group: AdmittedGroup) -> None:
        """Its pods take up room, or may."""
        shapes = [shape for demand in group.requests for shape in demand.shapes]
        sure = group.proven and not group.best_effort
        self.book.append((shapes, sure))
        if not sure and not group.best_effort:
            self.probing.append(group)


class OverlappingDomains:
    """The yards that share nodes with a domain, and their books added up."""

    def __init__(self, yards: Sequence[DomainState], ground: NodeSnapshot) -> None:
        self.yards = yards
        self._read = [0] * len(yards)
        self._ground, self._ledger = ground, Reservations(ground)
        self._left: tuple[int, Sequence[NodeInfo]] | None = None

    @property
    def left(self) -> Sequence[NodeInfo]:
        """The nodes with what is left when those have their places that need to be placed."""
        booked = sum(len(it.book) for it in self.yards)
        if self._left is None or self._left[0] != booked:
            self._left = booked, greedy.after_placing(self._ground.nodes, self.shapes(sure=True))
        return self._left[1]

    @property
    def ledger(self) -> Reservations:
        """With all that has been opened so far."""
        for number, yard in enumerate(self.yards):
            for shapes, sure in yard.book[self._read[number] :]:
                self._ledger.add_pods(shapes, sure=sure)
            self._read[number] = len(yard.book)
        return self._ledger

    def shapes(self, *, sure: bool) -> list[PodShape]:
        """What is to be placed and needs to be, or need not."""
        return group_equal(
            shape for yard in self.yards for shapes, needs in yard.book if needs is sure for shape in shapes
        )

    @property
    def starved(self) -> list[tuple[object, Candidate]]:
        """Those that may not be passed any more, in order."""
        found = [both for it in self.yards for both in it.starved.items()]
        return sorted(found, key=lambda it: admission_order(it[1]))

    @property
    def earlier(self) -> Candidate | None:
        """The first of those that stay closed."""
        return _first(it.held for it in self.yards)

    @property
    def probing(self) -> list[AdmittedGroup]:
        """Who has the one place for groups that are not sure of theirs."""
        return [group for it in self.yards for group in it.probing]


def _first(held: Iterable[Candidate | None]) -> Candidate | None:
    return min((it for it in held if it is not None), key=admission_order, default=None)
