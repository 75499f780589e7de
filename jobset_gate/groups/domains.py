"""Capacity domains: the nodes that pods may be bound to by their required selection (G3)."""

from collections.abc import Sequence

from jobset_gate.groups import fit
from jobset_gate.groups.certainty import Shape
from jobset_gate.groups.selection import Node, Selection


class Domains:
    """The domain of each demand, reckoned once for all that demand the same."""

    def __init__(self, nodes: Sequence[Node] = ()) -> None:
        self._nodes = nodes
        self._known: dict[frozenset[Selection], frozenset[str]] = {}

    def of(self, shapes: Sequence[Shape]) -> frozenset[str]:
        """The same object for the same demands."""
        demanded = frozenset(it.selection for it in shapes)
        known = self._known.get(demanded)
        if known is None:
            known = self._known[demanded] = fit.domain(shapes, self._nodes)
        return known
