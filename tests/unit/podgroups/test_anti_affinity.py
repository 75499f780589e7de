"""Which pods a pod keeps away from its node, by the anti-affinity of its spec (G3, Fit)."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate.podgroups.fit import constraints
from jobset_gate.podgroups.fit.constraints import MAX_REQUIREMENTS, MAX_TERMS, AntiAffinityTerm, LabelledPod

HOST = "kubernetes.io/hostname"


def terms(*said: dict[str, Any]) -> tuple[AntiAffinityTerm, ...]:
    required = {"requiredDuringSchedulingIgnoredDuringExecution": list(said)}
    return constraints.anti_affinity_terms({"affinity": {"podAntiAffinity": required}})


def term(selector: dict[str, Any] | None, **more: Any) -> dict[str, Any]:
    return {"topologyKey": HOST, **more} | ({} if selector is None else {"labelSelector": selector})


def mark(namespace: str = "team", **labels: str) -> LabelledPod:
    return namespace, constraints.stable_labels(labels.items())


A = {"matchLabels": {"app": "a"}}


def expression(operator: str, *values: str, key: str = "app") -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, **({"values": list(values)} if values else {})}]}


@pytest.mark.parametrize(
    ("said", "who", "selected"),
    [
        (term(A), mark(app="a"), True),
        (term(A), mark(app="b"), False),
        (term(A), mark("other", app="a"), False),
        (term(A, namespaces=["other"]), mark("other", app="a"), True),
        (term(A, namespaces=["other"]), mark(app="a"), False),
        (term(A, namespaceSelector={}), mark("other", app="a"), True),
        (term({}), mark(), True),
        (term(expression("In", "a", "b")), mark(app="b"), True),
        (term(expression("NotIn", "a")), mark(app="a"), False),
        (term(expression("NotIn", "a")), mark(), True),
        (term(expression("Exists")), mark(app="x"), True),
        (term(expression("Exists")), mark(), False),
        (term(expression("DoesNotExist")), mark(), True),
        (term(expression("In", "0", key="batch.kubernetes.io/job-completion-index")), mark(), True),
        (term({"matchLabels": {str(it): "" for it in range(MAX_REQUIREMENTS + 1)}}), mark(), True),
    ],
)
def test_which_pods_a_term_selects(said: dict[str, Any], who: LabelledPod, selected: bool) -> None:
    (found,) = terms(said)
    assert found.selects_pod(who, "team") is selected


def test_a_term_without_a_selector_selects_nobody_and_only_so_many_are_looked_at() -> None:
    assert terms(term(None)) == ()
    assert len(terms(*[term(A)] * (MAX_TERMS + 1))) == MAX_TERMS
    assert constraints.anti_affinity_terms({}) == ()


def test_labels_that_only_one_pod_has_are_not_kept() -> None:
    assert mark(**{"app": "a", "batch.kubernetes.io/job-completion-index": "7"}) == ("team", (("app", "a"),))
