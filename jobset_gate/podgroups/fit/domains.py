"""Capacity domains: the nodes that pods may be bound to by their required selection, and what these offer (G3)."""

from collections.abc import Iterator, Sequence

from jobset_gate.podgroups.fit import greedy
from jobset_gate.podgroups.fit.guaranteed import PodShape
from jobset_gate.podgroups.fit.requests import Amounts
from jobset_gate.podgroups.fit.selection import NodeFacts, NodeSelection


class Domains:
    """The domain of each demand, reckoned once for all that demand the same."""

    def __init__(self, nodes: Sequence[NodeFacts] = (), offers: frozenset[str] | None = None) -> None:
        """`offers`: the resources that some node has; None: not known."""
        self._nodes, self._offers = nodes, offers
        self._known: dict[frozenset[NodeSelection], frozenset[str]] = {}

    def domain_of(self, shapes: Sequence[PodShape]) -> frozenset[str]:
        """The same object for the same demands."""
        demanded = frozenset(it.selection for it in shapes)
        known = self._known.get(demanded)
        if known is None:
            known = self._known[demanded] = greedy.matching_nodes(shapes, self._nodes)
        return known

    def not_offered(self, asked: Amounts) -> Iterator[str]:
        """Extended resources that no node has: a DeviceClass may serve them (DRA), and nobody can see that here."""
        if self._offers is None:
            return
        for name, many in asked.items():
            if many > 0 and _is_extended(name) and name not in self._offers:
                yield name

    def offered_requests(self, asked: Amounts) -> Amounts:
        """The rest, that nodes are asked for; the same object where that is all of it."""
        left_out = set(self.not_offered(asked))
        return {name: many for name, many in asked.items() if name not in left_out} if left_out else asked


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
