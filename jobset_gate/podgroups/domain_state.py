"""What one scheduling cycle knows of the groups of a domain, and of the domains that share nodes with it (G3)."""

from collections.abc import Sequence
from typing import Final

from jobset_gate.podgroups.candidate import AdmittedGroup, Candidate, admission_order
from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.guaranteed import NodeInfo, NodeSnapshot, PodShape, Reservations, group_equal

MAX_STARVING_KINDS: Final = 40
"""Pod shapes of the starving groups of one domain: working out what they lack takes 1 ms for each."""


class DomainState:
    """The groups of one domain so far."""

    def __init__(self) -> None:
        self.held: Candidate | None = None
        """The first that waits for its turn to be probed."""
        self.starving: dict[object, Candidate] = {}
        """By equivalence key, in order: equal groups lack the same."""
        self.probed: list[AdmittedGroup] = []
        """Admitted unproven: one at a time."""
        self.reserved: list[tuple[Sequence[PodShape], bool]] = []
        """Pods to be bound, and whether room is kept for them."""

    def add_starving(self, key: object, candidate: Candidate) -> None:
        """The candidate may not be passed any more."""
        kinds = sum(len(request.shapes) for it in (*self.starving.values(), candidate) for request in it.requests)
        if kinds <= MAX_STARVING_KINDS:
            self.starving.setdefault(key, candidate)

    def add_admitted(self, group: AdmittedGroup) -> None:
        """Its pods take room, or may."""
        required = group.proven and not group.best_effort
        self.reserved.append(([shape for request in group.requests for shape in request.shapes], required))
        if not required and not group.best_effort:
            self.probed.append(group)


class OverlappingDomains:
    """The states of all domains that share nodes with one."""

    def __init__(self, states: Sequence[DomainState], nodes: NodeSnapshot) -> None:
        self._states, self._nodes = states, nodes
        self._added = [0] * len(states)
        self._reservations = Reservations(nodes)
        self._left: tuple[int, Sequence[NodeInfo]] | None = None

    @property
    def left(self) -> Sequence[NodeInfo]:
        """The nodes with what is left once the pods are placed for which room is kept."""
        count = sum(len(it.reserved) for it in self._states)
        if self._left is None or self._left[0] != count:
            self._left = count, greedy.after_placing(self._nodes.nodes, self.required)
        return self._left[1]

    @property
    def reservations(self) -> Reservations:
        """Of all groups admitted so far."""
        for number, state in enumerate(self._states):
            for shapes, required in state.reserved[self._added[number] :]:
                self._reservations.add_pods(shapes, required=required)
            self._added[number] = len(state.reserved)
        return self._reservations

    @property
    def required(self) -> list[PodShape]:
        """Pods to be bound for which room is kept."""
        return group_equal(
            shape for state in self._states for shapes, kept in state.reserved if kept for shape in shapes
        )

    @property
    def starving(self) -> list[tuple[object, Candidate]]:
        """Those that may not be passed any more, in order."""
        found = [both for it in self._states for both in it.starving.items()]
        return sorted(found, key=lambda it: admission_order(it[1]))

    @property
    def held(self) -> Candidate | None:
        """The first that waits for its turn to be probed."""
        return min((it.held for it in self._states if it.held is not None), key=admission_order, default=None)

    @property
    def probed(self) -> list[AdmittedGroup]:
        """Groups admitted unproven and not bound yet."""
        return [group for it in self._states for group in it.probed]
