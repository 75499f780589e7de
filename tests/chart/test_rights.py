"""Roles and bindings of every set of values.

docs/rbac.md has each right and why: tests/repo/test_security_rbac.py compares the two for each value that matters,
and tests/flow/test_rights.py runs everything with no more than these.
"""

from tests.chart.helm import Helm, Json, at, merged
from tests.chart.samples import SAMPLES

Right = tuple[str, str, str, str]
"""(API group, resource, name or *, verb)"""


def rights(rules: list[Json]) -> set[Right]:
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ["*"])
        for verb in rule["verbs"]
    }


def test_no_wildcards_no_other_secrets_and_every_binding_is_of_the_chart(helm4: Helm) -> None:
    for values in SAMPLES.values():
        found = helm4.render(merged(at("crds.keep", False), values))
        for role in found.kind("ClusterRole") + found.kind("Role"):
            for group, resource, name, verb in rights(role["rules"]):
                assert "*" not in (group, resource, verb)
                assert resource != "secrets" or (role["kind"], name) == ("Role", "jobset-gate-ca")
        accounts = {one["metadata"]["name"] for one in found.kind("ServiceAccount")}
        for binding in found.kind("ClusterRoleBinding") + found.kind("RoleBinding"):
            role = found.one(binding["roleRef"]["kind"], binding["roleRef"]["name"])
            assert role["metadata"].get("namespace") == binding["metadata"].get("namespace")
            (subject,) = binding["subjects"]
            assert subject["name"] in accounts
            assert subject["namespace"] == "jobset-gate-system"


def test_the_secret_s_name_follows_that_of_the_release(helm4: Helm) -> None:
    role = helm4.render(at("fullnameOverride", "full")).one("Role", "full-webhook")
    assert {name for _, resource, name, _ in rights(role["rules"]) if resource == "secrets"} == {"full-ca"}


def test_off_needs_no_quotes_to_take_away_the_right_to_list_nodes(helm4: Helm) -> None:
    mine = helm4.render(at("groups.capacityCheck", False)).one("ClusterRole", "jobset-gate-controller")["rules"]
    assert "nodes" not in {resource for _, resource, _, _ in rights(mine)}
