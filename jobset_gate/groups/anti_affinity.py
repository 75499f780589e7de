"""Pods that keep others away from where they run, by their required anti-affinity (G3, Fit)."""

from collections.abc import Iterable
from typing import Any, Final

from jobset_gate.groups.selection import Expression
from jobset_gate.model import Word
from jobset_gate.template import Json, dig, items, mapping

Labels = tuple[tuple[str, str], ...]
Mark = tuple[str, Labels]
"""(Namespace, labels): what decides about a pod whether others keep it away."""

MOST_TERMS: Final = 8
MOST_EXPRESSIONS: Final = 16
MOST_VALUES: Final = 64

OF_ONE_POD: Final = frozenset(
    {
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    }
)
"""Labels that differ from pod to pod of one owner: they are not kept, and whoever asks for one is taken to mean all."""

_HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class Term(Word, frozen=True):
    """Which pods are kept away, and from how much."""

    every: tuple[Expression, ...]
    """Of their labels: each must hold. () is all pods."""
    topology: str
    """Label of the nodes: they are kept from all nodes that have the same value there."""
    namespaces: frozenset[str] = frozenset()
    """None named: that of the pod itself."""
    anywhere: bool = False
    """In whatever namespaces a selector chooses, so in any."""

    def selects(self, mark: Mark, home: str) -> bool:
        """Whether it is about such a pod. `home`: the namespace of the pod whose term it is."""
        namespace, labels = mark
        if not (self.anywhere or namespace in (self.namespaces or (home,))):
            return False
        values = dict(labels)
        return all(it.key in OF_ONE_POD or _holds(it, values.get(it.key)) for it in self.every)


def of_pod(spec: Json) -> tuple[Term, ...]:
    """Whom a pod keeps away."""
    terms = items(dig(spec, "affinity", "podAntiAffinity", _HARD))
    return tuple(_term(it) for it in terms[:MOST_TERMS] if dig(it, "labelSelector") is not None)


def kept(labels: Iterable[tuple[str, str]]) -> Labels:
    """The labels that are the same for all pods of one owner, in order."""
    return tuple(sorted(it for it in labels if it[0] not in OF_ONE_POD))


def _term(said: Any) -> Term:
    selector = mapping(dig(said, "labelSelector"))
    every = [_wants(key, "In", [value]) for key, value in mapping(selector.get("matchLabels")).items()]
    more = items(selector.get("matchExpressions"))
    every += [_wants(dig(it, "key"), dig(it, "operator"), items(dig(it, "values"))) for it in more]
    within = len(every) <= MOST_EXPRESSIONS and all(len(it.values) <= MOST_VALUES for it in every)
    return Term(
        every=tuple(every) if within else (),
        topology=str(dig(said, "topologyKey") or ""),
        namespaces=frozenset(str(it) for it in items(dig(said, "namespaces"))[:MOST_VALUES]),
        anywhere=dig(said, "namespaceSelector") is not None,
    )


def _wants(key: Any, operator: Any, values: Iterable[Any]) -> Expression:
    return Expression(key=str(key), operator=str(operator), values=frozenset(str(it) for it in values))


def _holds(wanted: Expression, value: str | None) -> bool:
    match wanted.operator:
        case "In":
            return value in wanted.values
        case "NotIn":
            return value not in wanted.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    return True
