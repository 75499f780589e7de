"""Capacity domains: the nodes that pods may be bound to by their required selection, and what these offer (G3)."""

from collections.abc import Iterator, Sequence

from jobset_gate.groups import fit
from jobset_gate.groups.certainty import Shape
from jobset_gate.groups.requests import Amounts
from jobset_gate.groups.selection import Node, Selection


class Domains:
    """The domain of each demand, reckoned once for all that demand the same."""

    def __init__(self, nodes: Sequence[Node] = (), offers: frozenset[str] | None = None) -> None:
        """`offers`: the resources that some node has; None: not known."""
        self._nodes, self._offers = nodes, offers
        self._known: dict[frozenset[Selection], frozenset[str]] = {}

    def of(self, shapes: Sequence[Shape]) -> frozenset[str]:
        """The same object for the same demands."""
        demanded = frozenset(it.selection for it in shapes)
        known = self._known.get(demanded)
        if known is None:
            known = self._known[demanded] = fit.domain(shapes, self._nodes)
        return known

    def nowhere(self, asked: Amounts) -> Iterator[str]:
        """Extended resources that no node has: a DeviceClass may serve them (DRA), and nobody can see that here."""
        if self._offers is None:
            return
        for name, many in asked.items():
            if many > 0 and _is_extended(name) and name not in self._offers:
                yield name

    def offered(self, asked: Amounts) -> Amounts:
        """The rest, that nodes are asked for; the same object where that is all of it."""
        left_out = set(self.nowhere(asked))
        return {name: many for name, many in asked.items() if name not in left_out} if left_out else asked


def _is_extended(name: str) -> bool:
    domain, slash, _ = name.partition("/")
    return bool(slash) and domain != "kubernetes.io" and not domain.endswith(".kubernetes.io")
