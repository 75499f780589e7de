"""Pods that keep others away from where they run, by their required anti-affinity (G3, Fit)."""

from collections.abc import Iterable
from typing import Any, Final

from jobset_gate.barrier.model import Value
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested
from jobset_gate.podgroups.fit.selection import Requirement

Labels = tuple[tuple[str, str], ...]
LabelledPod = tuple[str, Labels]
"""(Namespace, labels): what decides about a pod whether others keep it away."""

MAX_TERMS: Final = 8
MAX_REQUIREMENTS: Final = 16
MAX_VALUES: Final = 64

PER_POD_LABELS: Final = frozenset(
    {
        "batch.kubernetes.io/job-completion-index",
        "statefulset.kubernetes.io/pod-name",
        "apps.kubernetes.io/pod-index",
    }
)
"""Labels that differ from pod to pod of one owner: they are not kept, and whoever asks for one is taken to mean all."""

_HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"


class AntiAffinityTerm(Value, frozen=True):
    """Which pods are kept away, and from how much."""

    every: tuple[Requirement, ...]
    """Of their labels: each must hold. () is all pods."""
    topology: str
    """Label of the nodes: they are kept from all nodes that have the same value there."""
    namespaces: frozenset[str] = frozenset()
    """None named: that of the pod itself."""
    anywhere: bool = False
    """In whatever namespaces a selector chooses, so in any."""

    def selects_pod(self, mark: LabelledPod, home: str) -> bool:
        """Whether it is about such a pod. `home`: the namespace of the pod whose term it is."""
        namespace, labels = mark
        if not (self.anywhere or namespace in (self.namespaces or (home,))):
            return False
        values = dict(labels)
        return all(it.key in PER_POD_LABELS or _matches(it, values.get(it.key)) for it in self.every)


def anti_affinity_terms(spec: Json) -> tuple[AntiAffinityTerm, ...]:
    """Whom a pod keeps away."""
    terms = as_list(nested(spec, "affinity", "podAntiAffinity", _HARD))
    return tuple(_term(it) for it in terms[:MAX_TERMS] if nested(it, "labelSelector") is not None)


def stable_labels(labels: Iterable[tuple[str, str]]) -> Labels:
    """The labels that are the same for all pods of one owner, in order."""
    return tuple(sorted(it for it in labels if it[0] not in PER_POD_LABELS))


def _term(said: Any) -> AntiAffinityTerm:
    selector = as_map(nested(said, "labelSelector"))
    every = [_requirement(key, "In", [value]) for key, value in as_map(selector.get("matchLabels")).items()]
    more = as_list(selector.get("matchExpressions"))
    every += [_requirement(nested(it, "key"), nested(it, "operator"), as_list(nested(it, "values"))) for it in more]
    within = len(every) <= MAX_REQUIREMENTS and all(len(it.values) <= MAX_VALUES for it in every)
    return AntiAffinityTerm(
        every=tuple(every) if within else (),
        topology=str(nested(said, "topologyKey") or ""),
        namespaces=frozenset(str(it) for it in as_list(nested(said, "namespaces"))[:MAX_VALUES]),
        anywhere=nested(said, "namespaceSelector") is not None,
    )


def _requirement(key: Any, operator: Any, values: Iterable[Any]) -> Requirement:
    return Requirement(key=str(key), operator=str(operator), values=frozenset(str(it) for it in values))


def _matches(wanted: Requirement, value: str | None) -> bool:
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
