"""Roles and bindings: each rule that is needed and no other. tests/flow/test_rights.py runs everything with them."""

from typing import Final

import pytest

from jobset_gate import names
from tests.charts.helm import Helm, Json, Objects, at, merged
from tests.charts.samples import SAMPLES
from webhook import registration

Right = tuple[str, str, str, str]
"""(API group, resource, name or *, verb)"""

GANGS: Final = {
    ("jobset.x-k8s.io", "jobsets"): "get list watch",
    ("jobset.x-k8s.io", "jobsets/status"): "patch",
    ("batch", "jobs"): "list watch",
    ("", "pods"): "list watch patch",
    ("", "configmaps"): "get list watch create update delete",
    ("", "events"): "list create",
}


def rights(rules: list[Json]) -> set[Right]:
    return {
        (group, resource, name, verb)
        for rule in rules
        for group in rule["apiGroups"]
        for resource in rule["resources"]
        for name in rule.get("resourceNames", ["*"])
        for verb in rule["verbs"]
    }


def of(found: Objects, kind: str, component: str) -> set[Right]:
    return rights(found.one(kind, f"jobset-gate-{component}")["rules"])


def on(group: str, resource: str, name: str, verbs: str) -> set[Right]:
    return {(group, resource, name, verb) for verb in verbs.split()}


GANG_RIGHTS: Final = {right for (group, plural), verbs in GANGS.items() for right in on(group, plural, "*", verbs)}
CRD_RIGHTS: Final = on("apiextensions.k8s.io", "customresourcedefinitions", names.JOBSET_CRD, "get list watch patch")


def test_the_controller_may_look_after_gangs_and_one_crd(helm4: Helm) -> None:
    assert of(helm4.render(), "ClusterRole", "controller") == GANG_RIGHTS | CRD_RIGHTS


def test_without_the_field_it_has_no_right_on_crds(helm4: Helm) -> None:
    assert of(helm4.render(at("crds.extendJobSet", False)), "ClusterRole", "controller") == GANG_RIGHTS


def test_who_patches_no_pod_may_not_either(helm4: Helm) -> None:
    silent = of(helm4.render(at("controller.patchConcurrency", 0)), "ClusterRole", "controller")
    assert GANG_RIGHTS - silent == {("", "pods", "*", "patch")}


def test_the_controller_may_write_one_lease(helm4: Helm) -> None:
    found = helm4.render()
    mine = on("coordination.k8s.io", "leases", names.LEASE, "get update")
    assert of(found, "Role", "controller") == mine | on("coordination.k8s.io", "leases", "*", "create")


def test_without_an_election_there_is_no_role_for_it(helm4: Helm) -> None:
    found = helm4.render(SAMPLES["bare"] | {"rbac": {"create": True}})
    assert [one["metadata"]["name"] for one in found.kind("Role")] == ["jobset-gate-webhook"]


def test_the_webhook_may_write_its_own_configurations(helm4: Helm) -> None:
    group, verbs = "admissionregistration.k8s.io", "get list watch patch"
    mine = on(group, "mutatingwebhookconfigurations", registration.MUTATING, verbs)
    mine |= on(group, "validatingwebhookconfigurations", registration.VALIDATING, verbs)
    assert of(helm4.render(), "ClusterRole", "webhook") == mine


def test_the_webhook_may_keep_one_secret(helm4: Helm) -> None:
    found = helm4.render(at("fullnameOverride", "door"))
    role = rights(found.one("Role", "door-webhook")["rules"])
    assert role == on("", "secrets", "door-ca", "get list watch create patch")


@pytest.mark.parametrize("sample", SAMPLES)
def test_nobody_else_may_read_any_secret_or_do_everything(helm4: Helm, sample: str) -> None:
    found = helm4.render(merged(at("crds.keep", False), SAMPLES[sample]))
    for role in found.kind("ClusterRole") + found.kind("Role"):
        for group, resource, name, verb in rights(role["rules"]):
            assert "*" not in (group, resource, verb)
            assert resource != "secrets" or (role["kind"], name) == ("Role", "jobset-gate-ca")


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_binding_is_of_a_role_and_an_account_of_the_chart(helm4: Helm, sample: str) -> None:
    found = helm4.render(merged(at("crds.keep", False), SAMPLES[sample]))
    accounts = {one["metadata"]["name"] for one in found.kind("ServiceAccount")}
    for binding in found.kind("ClusterRoleBinding") + found.kind("RoleBinding"):
        role = found.one(binding["roleRef"]["kind"], binding["roleRef"]["name"])
        assert role["metadata"].get("namespace") == binding["metadata"].get("namespace")
        (subject,) = binding["subjects"]
        assert subject["name"] in accounts
        assert subject["namespace"] == "jobset-gate-system"


def test_rights_may_be_given_by_somebody_else(helm4: Helm) -> None:
    found = helm4.render(merged(at("rbac.create", False), at("tests.enabled", False)))
    kinds = {one["kind"] for one in found.all}
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
