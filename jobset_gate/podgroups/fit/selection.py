"""Which nodes a pod may be bound to: by nodeSelector, required node affinity and taints (G3, Fit)."""

import re
from collections.abc import Mapping
from typing import Any, Final

from jobset_gate.barrier.model import Value
from jobset_gate.objects.unstructured import Json, as_list, as_map, nested

_INTEGER: Final = re.compile(r"[+-]?[0-9]{1,18}")
_REQUIRED: Final = ("affinity", "nodeAffinity", "requiredDuringSchedulingIgnoredDuringExecution")
_REPELLING_EFFECTS: Final = ("NoSchedule", "NoExecute")
_NAME: Final = "metadata.name"

MAX_REQUIREMENTS: Final = 32
MAX_TOLERATIONS: Final = 32
"""Of a pod. Each is asked about each node, on the loop that decides gangs, too. Pods with more are not modelled."""


class NodeFacts(Value, frozen=True):
    """A node as far as it decides who may come."""

    name: str
    labels: Mapping[str, str]
    taints: tuple[tuple[str, str, str], ...] = ()
    """(Key, value, effect)."""
    unschedulable: bool = False


class Requirement(Value, frozen=True):
    """One demand on a label, or on the node's name."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    field: bool = False

    def matches_node(self, node: NodeFacts) -> bool:
        """Whether a node meets it; an operator that is not known is met by none."""
        value = self._value(node)
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

    def _value(self, node: NodeFacts) -> str | None:
        if not self.field:
            return node.labels.get(self.key)
        return node.name if self.key == _NAME else None

    def _compares(self, value: str | None) -> bool:
        numbers = [it for it in (value, *self.values) if it is not None and _INTEGER.fullmatch(it)]
        if value is None or len(numbers) != 2:
            return False
        have, bound = (int(it) for it in numbers)
        return have > bound if self.operator == "Gt" else have < bound


class Toleration(Value, frozen=True):
    """What a pod puts up with; an empty key or effect is every one."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: tuple[str, str, str]) -> bool:
        """Whether a taint does not keep the pod away."""
        key, value, effect = taint
        if self.effect not in ("", effect) or self.key not in ("", key):
            return False
        return self.operator == "Exists" or (self.key != "" and self.value == value)


class NodeSelection(Value, frozen=True):
    """All that a pod demands of its node; the same for all pods of a template."""

    every: tuple[Requirement, ...] = ()
    """nodeSelector: each must hold."""
    terms: tuple[tuple[Requirement, ...], ...] | None = None
    """Required node affinity: all of one of them must hold. None: no demand."""
    tolerations: tuple[Toleration, ...] = ()

    @property
    def requirement_count(self) -> int:
        """How many there are to ask about one node for `matches`, at most."""
        return len(self.every) + sum(map(len, self.terms or ()))

    def matches(self, node: NodeFacts) -> bool:
        """Whether the node is in the pod's domain: its labels are right, whatever its taints and its room."""
        if not all(it.matches_node(node) for it in self.every):
            return False
        return self.terms is None or any(term and all(it.matches_node(node) for it in term) for term in self.terms)

    def admits(self, node: NodeFacts) -> bool:
        """Whether a pod may be bound to it now, if it has room."""
        taints = [it for it in node.taints if it[2] in _REPELLING_EFFECTS]
        if node.unschedulable:
            taints.append(("node.kubernetes.io/unschedulable", "", "NoSchedule"))
        tolerated = all(any(it.tolerates(taint) for it in self.tolerations) for taint in taints)
        return tolerated and self.matches(node)


def pod_node_selection(spec: Json) -> NodeSelection:
    """What a pod demands; no demand for one that is too wide."""
    if exceeds_limits(spec):
        return NodeSelection()
    required = nested(spec, *_REQUIRED)
    selector = sorted(as_map(spec.get("nodeSelector")).items())
    return NodeSelection(
        every=tuple(Requirement(key=key, operator="In", values=frozenset({_text(value)})) for key, value in selector),
        terms=None if required is None else tuple(_term(it) for it in as_list(nested(required, "nodeSelectorTerms"))),
        tolerations=tuple(_toleration(as_map(it)) for it in as_list(spec.get("tolerations"))),
    )


def exceeds_limits(spec: Json) -> bool:
    """Whether a pod says more of its nodes than is reckoned with."""
    terms = as_list(nested(spec, *_REQUIRED, "nodeSelectorTerms"))
    asked = sum(
        max(1, len(as_list(nested(it, "matchExpressions"))) + len(as_list(nested(it, "matchFields")))) for it in terms
    )
    asked += len(as_map(spec.get("nodeSelector")))
    return asked > MAX_REQUIREMENTS or len(as_list(spec.get("tolerations"))) > MAX_TOLERATIONS


def node_facts(node: Json) -> NodeFacts:
    """A node as it stands in the API."""
    return NodeFacts(
        name=_text(nested(node, "metadata", "name")),
        labels={key: _text(value) for key, value in as_map(nested(node, "metadata", "labels")).items()},
        taints=tuple(
            (_text(nested(it, "key")), _text(nested(it, "value")), _text(nested(it, "effect")))
            for it in as_list(nested(node, "spec", "taints"))
        ),
        unschedulable=nested(node, "spec", "unschedulable") is True,
    )


def _term(term: Any) -> tuple[Requirement, ...]:
    labels = [_expression(as_map(it), field=False) for it in as_list(nested(term, "matchExpressions"))]
    return (*labels, *(_expression(as_map(it), field=True) for it in as_list(nested(term, "matchFields"))))


def _expression(said: Json, *, field: bool) -> Requirement:
    listed = frozenset(_text(it) for it in as_list(said.get("values")))
    return Requirement(key=_text(said.get("key")), operator=_text(said.get("operator")), values=listed, field=field)


def _toleration(said: Json) -> Toleration:
    return Toleration(
        key=_text(said.get("key")),
        operator=_text(said.get("operator")) or "Equal",
        value=_text(said.get("value")),
        effect=_text(said.get("effect")),
    )


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""
