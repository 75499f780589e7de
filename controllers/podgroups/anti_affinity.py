"""From which nodes bound pods keep others away by their anti-affinity, by the labels of those others (G3, Fit)."""

from collections import Counter
from collections.abc import Iterable

from jobset_gate.podgroups.fit.anti_affinity import PER_POD_LABELS, AntiAffinityTerm, LabelledPod
from jobset_gate.podgroups.fit.selection import NodeFacts

_Held = tuple[str, AntiAffinityTerm]
"""The namespace of the pods that have it."""


class AntiAffinityIndex:
    """The terms of all bound pods, with the nodes that they are on."""

    def __init__(self) -> None:
        self._on: dict[_Held, Counter[str]] = {}
        self._asking: dict[tuple[str, str], set[_Held]] = {}
        """By a label without which a pod is none of those."""
        self._others: set[_Held] = set()

    def add_terms(self, namespace: str, terms: Iterable[AntiAffinityTerm], node: str, sign: int) -> None:
        """One pod more with these terms on a node, or less."""
        for term in terms:
            held = namespace, term
            on = self._on.setdefault(held, Counter())
            on[node] += sign
            if not on[node]:
                del on[node]
            among = self._among(term)
            among.discard(held) if not on else among.add(held)
            if not on:
                del self._on[held]

    def excluded_nodes(self, marks: Iterable[LabelledPod], nodes: Iterable[NodeFacts]) -> frozenset[str]:
        """The nodes that one of such pods cannot come to."""
        held = (
            {it for mark in marks for it in self._candidates(mark) if it[1].selects_pod(mark, it[0])}
            if self._on
            else ()
        )
        if not held:
            return frozenset()
        nodes = list(nodes)
        labels = {it.name: it.labels for it in nodes}
        values = {
            (term.topology, labels.get(node, {}).get(term.topology))
            for home, term in held
            for node in self._on[home, term]
        }
        keys = {key for key, _ in values}
        return frozenset(
            it.name for it in nodes if any(key in it.labels and (key, it.labels[key]) in values for key in keys)
        )

    def _candidates(self, mark: LabelledPod) -> Iterable[_Held]:
        yield from self._others
        for pair in mark[1]:
            yield from self._asking.get(pair, ())

    def _among(self, term: AntiAffinityTerm) -> set[_Held]:
        for it in term.every:
            if it.operator == "In" and len(it.values) == 1 and it.key not in PER_POD_LABELS:
                return self._asking.setdefault((it.key, next(iter(it.values))), set())
        return self._others
