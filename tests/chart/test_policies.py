"""Admission policies: the accounts they bind, their texts, and when none is rendered.

What they refuse and what not: tests/flow/test_rights_limited.py and its neighbours, on a real API server.
"""

from typing import Any

import pytest

from tests.chart.helm import CHART, KUBERNETES, NAMESPACE, Helm, Json, RenderedObjects, at, merged

KIND = "ValidatingAdmissionPolicy"
NAMES = {f"jobset-gate-controller-{one}" for one in ("configmaps", "kinds", "owners", "podgroups", "pods")}
REUSED: Json = {"admissionPolicies": None}
"""What `helm upgrade --reuse-values` has of it after a chart that did not know it."""


def policies(found: RenderedObjects) -> list[Json]:
    return found.kind(KIND)


@pytest.mark.parametrize("values", [{}, REUSED, at("admissionPolicies.enabled", True), at("rbac.create", False)])
def test_each_is_bound_and_refuses(helm: Helm, values: Json) -> None:
    found = helm.render(values)
    assert {one["metadata"]["name"] for one in policies(found)} == {"jobset-gate-webhook", *NAMES}
    for one in policies(found):
        name = one["metadata"]["name"]
        binding = found.one(f"{KIND}Binding", name)["spec"]
        assert binding == {"policyName": name, "validationActions": ["Deny"]}
        assert one["spec"]["failurePolicy"] == "Fail"
        assert {rule["reason"] for rule in one["spec"]["validations"]} == {"Forbidden"}


@pytest.mark.parametrize(
    ("account", "name"),
    [({}, ""), ({"create": True, "name": "mine"}, "mine"), ({"create": False, "name": ""}, "default")],
)
def test_each_binds_one_of_our_accounts_and_nobody_else(helm4: Helm, account: Json, name: str) -> None:
    found = helm4.render(merged(at("webhook.serviceAccount", account), at("controller.serviceAccount", account)))
    for one in policies(found):
        component = one["metadata"]["name"].split("-")[2]
        (condition,) = one["spec"]["matchConditions"]
        user = f"system:serviceaccount:{NAMESPACE}:{name or f'jobset-gate-{component}'}"
        assert condition["expression"] == f"request.userInfo.username == '{user}'"


def test_their_names_begin_as_all_names_do_and_there_is_none_where_none_is_wanted(helm4: Helm) -> None:
    found = helm4.render(at("fullnameOverride", "full"))
    for kind in (KIND, f"{KIND}Binding"):
        assert {one["metadata"]["name"].split("-")[0] for one in found.kind(kind)} == {"full"}
    assert KIND not in helm4.text(at("admissionPolicies.enabled", False))


@pytest.mark.parametrize(
    ("served", "wanted", "there"),
    [
        (("v1/Pod",), "auto", False),
        (("v1/Pod", f"admissionregistration.k8s.io/v1/{KIND}"), "auto", True),
        (("v1/Pod",), True, True),
    ],
)
def test_auto_asks_the_api_server_where_there_is_one(helm: Helm, served: Any, wanted: Any, there: bool) -> None:
    """`helm template` calls none, unless its flags say what one serves, as GitOps tools do."""
    versions = [word for one in served for word in ("--api-versions", one)]
    values = at("admissionPolicies.enabled", wanted)
    said = helm.run("template", "x", str(CHART), "--kube-version", KUBERNETES, *versions, values=values)
    assert (f"kind: {KIND}\n" in said) is there
