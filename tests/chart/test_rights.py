"""Roles and bindings: each rule that is needed and no other. tests/flow/test_rights.py runs everything with them."""

from typing import Any, Final

import pytest

from jobset_gate import names
from jobset_gate.podgroups import crds
from jobset_gate.podgroups.model import FLAVOR_OF, POD_GROUP_APIS, Format
from tests.chart.helm import Helm, Json, RenderedObjects, at, merged
from tests.chart.samples import SAMPLES
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


GROUPS: Final = {
    ("", "pods"): "get patch delete",
    ("", "pods/status"): "patch",
    ("batch", "jobs"): "get patch",
    ("jobset.x-k8s.io", "jobsets"): "patch",
    ("apps", "replicasets"): "get",
    ("apps", "statefulsets"): "get",
    ("", "replicationcontrollers"): "get",
    ("", "configmaps"): "patch",
    ("", "nodes"): "list watch",
    ("", "resourcequotas"): "list watch",
    **{(api, "podgroups"): "get list watch patch" for api in crds.GROUPS.values()},
    **{(api, "podgroups/status"): "patch" for api in crds.GROUPS.values()},
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


def of(found: RenderedObjects, kind: str, component: str) -> set[Right]:
    return rights(found.one(kind, f"jobset-gate-{component}")["rules"])


def on(group: str, resource: str, name: str, verbs: str) -> set[Right]:
    return {(group, resource, name, verb) for verb in verbs.split()}


GANG_RIGHTS: Final = {right for (group, plural), verbs in GANGS.items() for right in on(group, plural, "*", verbs)}
CRD_RIGHTS: Final = on("apiextensions.k8s.io", "customresourcedefinitions", names.JOBSET_CRD, "get list watch patch")


NO_GROUPS: Final = at("groups.enabled", False)
GROUP_RIGHTS: Final = {right for (group, plural), verbs in GROUPS.items() for right in on(group, plural, "*", verbs)}
KINDS: Final = {
    Format.KEP_24: names.KEP24_GROUP,
    Format.SCHEDULER_PLUGINS: names.PLUGINS_GROUP,
    Format.KOORDINATOR_POD_GROUP: names.SIGS_GROUP,
}


def crds_of(*apis: str) -> set[Right]:
    kinds = [crds.crd_name(api) for api in apis]
    verbs = "get list watch create patch"
    return {right for kind in kinds for right in on("apiextensions.k8s.io", "customresourcedefinitions", kind, verbs)}


def test_the_controller_may_look_after_gangs_groups_and_their_kinds(helm4: Helm) -> None:
    expected = GANG_RIGHTS | CRD_RIGHTS | GROUP_RIGHTS | crds_of(*KINDS.values())
    assert of(helm4.render(), "ClusterRole", "controller") == expected


def test_without_groups_it_may_none_of_that(helm4: Helm) -> None:
    found = helm4.render(NO_GROUPS)
    assert of(found, "ClusterRole", "controller") == GANG_RIGHTS | CRD_RIGHTS
    assert "podgroup" not in str(found.kind("ClusterRole")).lower()
    assert not [one for one in found.all if one["metadata"]["name"].endswith("-ungate")]


def test_without_the_field_and_groups_it_has_no_right_on_crds(helm4: Helm) -> None:
    values = merged(NO_GROUPS, at("crds.extendJobSet", False))
    assert of(helm4.render(values), "ClusterRole", "controller") == GANG_RIGHTS


def test_who_patches_no_pod_may_not_either(helm4: Helm) -> None:
    silent = of(helm4.render(merged(NO_GROUPS, at("controller.patchConcurrency", 0))), "ClusterRole", "controller")
    assert GANG_RIGHTS - silent == {("", "pods", "*", "patch")}


@pytest.mark.parametrize("way", list(Format))
def test_rights_on_pod_groups_are_those_of_the_ways_that_are_on(helm4: Helm, way: Format) -> None:
    mine = of(helm4.render(at("groups.ways", [way.value])), "ClusterRole", "controller")
    looked_for = {api for api, plural, _, _ in mine if plural == "podgroups"}
    assert (
        looked_for == set(POD_GROUP_APIS[FLAVOR_OF[way]]) if way != Format.KOORDINATOR_ANNOTATIONS else not looked_for
    )
    expected = crds_of(*(api for its, api in KINDS.items() if its is way))
    assert {right for right in mine if right[1] == "customresourcedefinitions"} - CRD_RIGHTS == expected
    assert (("", "resourcequotas", "*", "list") in mine) is (way is Format.KEP_24)


def test_kinds_that_others_bring_are_only_read(helm4: Helm) -> None:
    mine = of(helm4.render(at("crds.podGroups", False)), "ClusterRole", "controller")
    on_crds = {right for right in mine if right[1] == "customresourcedefinitions"} - CRD_RIGHTS
    assert {(name, verb) for _, _, name, verb in on_crds} == {(kind, "get") for kind in crds.GROUPS}


@pytest.mark.parametrize("check", ["Off", False])
def test_who_does_not_look_for_room_sees_no_nodes(helm4: Helm, check: Any) -> None:
    mine = of(helm4.render(at("groups.capacityCheck", check)), "ClusterRole", "controller")
    assert not {right for right in mine if right[1] == "nodes"}


def test_the_scheduler_s_own_groups_are_made_only_where_they_are_used(helm4: Helm) -> None:
    def native(found: RenderedObjects) -> set[Right]:
        return {right for right in of(found, "ClusterRole", "controller") if right[0] == "scheduling.k8s.io"}

    assert native(helm4.render()) == set()
    on_ = on("scheduling.k8s.io", "podgroups", "*", "get create patch delete")
    assert native(helm4.render(at("groups.native", "On"))) == on_


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
    mine |= on(group, "mutatingwebhookconfigurations", names.POD_WEBHOOK, verbs)
    mine |= on(group, "validatingwebhookconfigurations", registration.VALIDATING, verbs)
    assert of(helm4.render(), "ClusterRole", "webhook") == mine


def test_the_webhook_may_keep_one_secret(helm4: Helm) -> None:
    found = helm4.render(at("fullnameOverride", "full"))
    role = rights(found.one("Role", "full-webhook")["rules"])
    assert role == on("", "secrets", "full-ca", "get list watch create patch")


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


def test_rights_may_come_from_elsewhere(helm4: Helm) -> None:
    found = helm4.render(merged(at("rbac.create", False), at("tests.enabled", False)))
    kinds = {one["kind"] for one in found.all}
    assert not kinds & {"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}
