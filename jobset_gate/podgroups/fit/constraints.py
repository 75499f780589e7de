"""What a pod requires of a node: resources, node selection, tolerations, anti-affinity; what is not modelled (G3)."""

import re
from collections.abc import Iterable, Mapping
from math import ceil
from typing import Any, Final

from jobset_gate.barrier.model import Value
from jobset_gate.objects import devices, quantity
from jobset_gate.objects.unstructured import Json, as_list, as_map, as_text, nested

_HARD: Final = "requiredDuringSchedulingIgnoredDuringExecution"

# --- Resources -------------------------------------------------------------------------------------------------------

Amounts = Mapping[str, int]
"""By resource, in thousandths: `500m` is 500, one GPU 1000. Integers, for speed over thousands of nodes."""

PODS: Final = "pods"
_OVERRIDABLE: Final = ("cpu", "memory")
"""What a request for the whole pod replaces, with hugepages."""
_BYTES: Final = ("memory", "ephemeral-storage")


def pod_requests(spec: Json) -> dict[str, int]:
    """Main containers and sidecars, or the largest init step; overhead; and one of the node's pods."""
    mains = [_container_requests(as_map(it)) for it in as_list(spec.get("containers"))]
    inits = [
        (_container_requests(as_map(it)), nested(it, "restartPolicy") == "Always")
        for it in as_list(spec.get("initContainers"))
    ]
    found = dict(devices.pod_devices(mains, inits))
    whole = _container_requests(spec)
    found |= {name: many for name, many in whole.items() if name in _OVERRIDABLE or name.startswith("hugepages-")}
    for name, many in parse_amounts(nested(spec, "overhead")).items():
        found[name] = found.get(name, 0) + many
    return found | {PODS: 1000}


def parse_amounts(values: Any) -> dict[str, int]:
    """A resource list in thousandths, rounded up; an invalid quantity counts as absent."""
    read = ((name, quantity.amount(value)) for name, value in as_map(values).items())
    return {name: ceil(amount * 1000) for name, amount in read if amount is not None}


def subtract(free: Amounts, taken: Amounts) -> dict[str, int]:
    """`free` less `taken`; may be negative."""
    return {name: many - taken.get(name, 0) for name, many in free.items()}


def format_amount(name: str, thousandths: int) -> str:
    number = f"{thousandths / 1000:.10g}"
    return f"{thousandths / 1000 / 2**30:.4g}Gi" if name in _BYTES and thousandths else number


def scarcity(requests: Amounts) -> tuple[int, ...]:
    """Sorting key: devices before memory before processors, since pods that need scarce resources are placed first."""
    scarce = sum(many for name, many in requests.items() if name not in ("cpu", PODS, *_BYTES))
    return scarce, requests.get("memory", 0), requests.get("cpu", 0)


def _container_requests(holder: Json) -> dict[str, int]:
    """A limit stands for a missing request, as by the API server's defaults."""
    resources = holder.get("resources")
    return parse_amounts(nested(resources, "limits")) | parse_amounts(nested(resources, "requests"))


# --- Node selection --------------------------------------------------------------------------------------------------

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_NODE_AFFINITY: Final = ("affinity", "nodeAffinity", _HARD)
_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_NAME: Final = "metadata.name"

MAX_REQUIREMENTS: Final = 32
MAX_TOLERATIONS: Final = 32
"""Of a pod: each is checked against each node, on the event loop. Pods with more are not modelled."""


class NodeFacts(Value, frozen=True):
    """What of a node decides which pods it admits."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...] = ()
    """(Key, value, effect)."""
    unschedulable: bool = False


class Requirement(Value, frozen=True):
    """A selector requirement on a label, or on the node's name."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    field: bool = False

    def matches_node(self, node: NodeFacts) -> bool:
        """Whether a node meets it; no node meets an unknown operator."""
        if self.field:
            return self.matches_value(node.name if self.key == _NAME else None)
        return self.matches_value(node.labels.get(self.key))

    def matches_value(self, value: str | None) -> bool:
        """Whether the value of the key meets it; None: there is no such key."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return self._compares(value)
        return False

    def _compares(self, value: str | None) -> bool:
        numbers = [it for it in (value, *self.values) if it is not None and _INTEGER.fullmatch(it)]
        if value is None or len(numbers) != 2:
            return False
        have, limit = (int(it) for it in numbers)
        return have > limit if self.operator == "Gt" else have < limit


class Toleration(Value, frozen=True):
    """An empty key or effect tolerates every one."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: tuple[str, str, str]) -> bool:
        """Whether the pod may be bound in spite of the taint."""
        key, value, effect = taint
        if self.effect not in ("", effect) or self.key not in ("", key):
            return False
        return self.operator == "Exists" or (self.key != "" and self.value == value)


class NodeSelection(Value, frozen=True):
    """nodeSelector, required node affinity and tolerations; the same for all pods of a template."""

    every: tuple[Requirement, ...] = ()
    """nodeSelector: all of them."""
    terms: tuple[tuple[Requirement, ...], ...] | None = None
    """Required node affinity: all requirements of one term. None: there is none."""
    tolerations: tuple[Toleration, ...] = ()

    @property
    def requirement_count(self) -> int:
        """Checks of one node by `matches`, at most."""
        return len(self.every) + sum(map(len, self.terms or ()))

    def matches(self, node: NodeFacts) -> bool:
        """Whether the node is in the pod's domain, whatever its taints and free resources."""
        if not all(it.matches_node(node) for it in self.every):
            return False
        return self.terms is None or any(term and all(it.matches_node(node) for it in term) for term in self.terms)

    def admits(self, node: NodeFacts) -> bool:
        """Whether a pod may be bound to the node now, resources aside."""
        taints = [it for it in node.taints if it[2] in _REPELLING_EFFECTS]
        if node.unschedulable:
            taints.append(("node.kubernetes.io/unschedulable", "", "NoSchedule"))
        tolerated = all(any(it.tolerates(taint) for it in self.tolerations) for taint in taints)
        return tolerated and self.matches(node)


def pod_node_selection(spec: Json) -> NodeSelection:
    """A pod's node selection; empty if it exceeds the limits."""
    if exceeds_limits(spec):
        return NodeSelection()
    required = nested(spec, *_NODE_AFFINITY)
    selector = sorted(as_map(spec.get("nodeSelector")).items())
    return NodeSelection(
        every=tuple(Requirement(key=key, operator="In", values=frozenset({as_text(value)})) for key, value in selector),
        terms=None if required is None else tuple(map(_node_term, as_list(nested(required, "nodeSelectorTerms")))),
        tolerations=tuple(_toleration(as_map(it)) for it in as_list(spec.get("tolerations"))),
    )


def exceeds_limits(spec: Json) -> bool:
    """Whether a pod has more requirements or tolerations than are modelled."""
    terms = as_list(nested(spec, *_NODE_AFFINITY, "nodeSelectorTerms"))
    count = sum(
        max(1, len(as_list(nested(it, "matchExpressions"))) + len(as_list(nested(it, "matchFields")))) for it in terms
    )
    count += len(as_map(spec.get("nodeSelector")))
    return count > MAX_REQUIREMENTS or len(as_list(spec.get("tolerations"))) > MAX_TOLERATIONS


def _node_term(term: Any) -> tuple[Requirement, ...]:
    labels = [_requirement(it, field=False) for it in as_list(nested(term, "matchExpressions"))]
    return (*labels, *(_requirement(it, field=True) for it in as_list(nested(term, "matchFields"))))


def _requirement(body: Any, *, field: bool = False) -> Requirement:
    values = frozenset(as_text(it) for it in as_list(nested(body, "values")))
    key, operator = as_text(nested(body, "key")), as_text(nested(body, "operator"))
    return Requirement(key=key, operator=operator, values=values, field=field)


def _toleration(body: Json) -> Toleration:
    return Toleration(
        key=as_text(body.get("key")),
        operator=as_text(body.get("operator")) or "Equal",
        value=as_text(body.get("value")),
        effect=as_text(body.get("effect")),
    )


# --- Required anti-affinity of bound pods ----------------------------------------------------------------------------

Labels = tuple[tuple[str, str], ...]
LabelledPod = tuple[str, Labels]
"""(Namespace, labels): what decides whether an anti-affinity term selects a pod."""

MAX_TERMS: Final = 8
MAX_TERM_REQUIREMENTS: Final = 16
MAX_VALUES: Final = 64

PER_POD_LABELS: Final = frozenset(
    {"batch.kubernetes.io/job-completion-index", "statefulset.kubernetes.io/pod-name", "apps.kubernetes.io/pod-index"}
)
"""Labels that differ between the pods of one owner. They are not kept, and a requirement on one matches every pod."""


class AntiAffinityTerm(Value, frozen=True):
    """Which pods a bound pod repels, and from which nodes."""

    every: tuple[Requirement, ...]
    """On their labels; () is all pods."""
    topology: str
    """Node label: all nodes with the same value are excluded."""
    namespaces: frozenset[str] = frozenset()
    """Empty: that of the pod itself."""
    anywhere: bool = False
    """With a namespaceSelector: taken for all namespaces."""

    def selects_pod(self, pod: LabelledPod, home: str) -> bool:
        """Whether it repels such a pod. `home`: the namespace of the pod that has the term."""
        namespace, labels = pod
        if not (self.anywhere or namespace in (self.namespaces or (home,))):
            return False
        values = dict(labels)
        return all(_may_match(it, values) for it in self.every)


def anti_affinity_terms(spec: Json) -> tuple[AntiAffinityTerm, ...]:
    """The terms of a pod, at most MAX_TERMS."""
    terms = as_list(nested(spec, "affinity", "podAntiAffinity", _HARD))
    return tuple(_term(it) for it in terms[:MAX_TERMS] if nested(it, "labelSelector") is not None)


def stable_labels(labels: Iterable[tuple[str, str]]) -> Labels:
    """The labels that all pods of one owner share, sorted."""
    return tuple(sorted(it for it in labels if it[0] not in PER_POD_LABELS))


def _may_match(requirement: Requirement, labels: Mapping[str, str]) -> bool:
    """An unknown operator counts as matching: the term may repel the pod."""
    known = requirement.operator in ("In", "NotIn", "Exists", "DoesNotExist")
    per_pod = requirement.key in PER_POD_LABELS
    return per_pod or not known or requirement.matches_value(labels.get(requirement.key))


def _term(body: Any) -> AntiAffinityTerm:
    selector = as_map(nested(body, "labelSelector"))
    every = [
        Requirement(key=str(key), operator="In", values=frozenset({str(value)}))
        for key, value in as_map(selector.get("matchLabels")).items()
    ]
    every += map(_requirement, as_list(selector.get("matchExpressions")))
    within = len(every) <= MAX_TERM_REQUIREMENTS and all(len(it.values) <= MAX_VALUES for it in every)
    return AntiAffinityTerm(
        every=tuple(every) if within else (),
        topology=str(nested(body, "topologyKey") or ""),
        namespaces=frozenset(str(it) for it in as_list(nested(body, "namespaces"))[:MAX_VALUES]),
        anywhere=nested(body, "namespaceSelector") is not None,
    )


# --- What the fit check does not model -------------------------------------------------------------------------------


def unsupported_constraints(spec: Json) -> tuple[str, ...]:
    """Constraints of a pod that the fit check ignores, by name: groups of such pods are probed (G3).

    Preemption is not modelled either, but that depends on other pods (see `cycle`).
    """
    affinity = as_map(spec.get("affinity"))
    containers = [*as_list(spec.get("containers")), *as_list(spec.get("initContainers"))]
    spread = [nested(it, "whenUnsatisfiable") for it in as_list(spec.get("topologySpreadConstraints"))]
    volumes = as_list(spec.get("volumes"))
    has = {
        "inter-pod affinity": nested(affinity, "podAffinity", _HARD),
        "inter-pod anti-affinity": nested(affinity, "podAntiAffinity", _HARD),
        "topology spread": any(it != "ScheduleAnyway" for it in spread),
        "volumes that bind to nodes": any(
            nested(it, kind) is not None for it in volumes for kind in ("persistentVolumeClaim", "ephemeral")
        ),
        "host ports": any(nested(port, "hostPort") for it in containers for port in as_list(nested(it, "ports"))),
        "resource claims": spec.get("resourceClaims"),
    }
    return tuple(name for name, found in has.items() if found)
