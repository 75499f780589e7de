"""Whose the CRDs of pod groups are, and whether groups can be said with them."""

from typing import Any

import pytest

from controllers.podgroups import crds
from jobset_gate import names
from jobset_gate.podgroups.model import Format

Json = dict[str, Any]
PLUGINS, SIGS, KEP24 = names.PLUGINS_GROUP, names.SIGS_GROUP, names.KEP24_GROUP


def stored(group: str = PLUGINS, **metadata: Any) -> Json:
    """Ours, as an API server gives it back."""
    crd = crds.manifest(group)
    crd["metadata"] |= {"resourceVersion": "7", "uid": "u"} | metadata
    return crd


def fields(manager: str, part: str = "f:spec", **more: str) -> Json:
    """Who has written what, as managedFields have it."""
    return {"manager": manager, "fieldsV1": {part: {}}, **more}


@pytest.mark.parametrize(
    ("others", "ours"),
    [
        ([], True),
        ([fields(crds.MANAGER), fields("kube-apiserver", "f:status", subresource="status")], True),
        ([fields(crds.MANAGER), fields("kubectl-annotate", "f:metadata")], True),
        ([fields(crds.MANAGER), fields("helm")], False),
        ([fields("kubectl-edit")], False),
    ],
)
def test_one_of_ours_is_ours_until_another_user_writes_another_spec_into_it(others: list[Json], ours: bool) -> None:
    assert crds.is_ours(stored(managedFields=others)) is ours


def test_one_without_our_label_is_not_ours() -> None:
    assert not crds.is_ours(stored(labels={}))
    assert not crds.is_ours(stored(labels={names.MANAGED_BY_LABEL: "Helm"}))


@pytest.mark.parametrize(
    ("said", "old"), [("0", True), (None, True), ("later", True), (str(crds.REVISION), False), ("99", False)]
)
def test_only_one_that_is_older_than_we_know_it_is_outdated(said: str | None, old: bool) -> None:
    crd = stored(annotations={} if said is None else {names.POD_GROUP_CRD_REVISION: said})
    assert (crds.revision(crd) < crds.REVISION) is old


def test_an_update_is_for_the_version_that_was_read_and_keeps_what_others_noted() -> None:
    body = crds.update(stored(annotations={names.POD_GROUP_CRD_REVISION: "0", "theirs": "x"}))
    assert body["metadata"]["resourceVersion"] == "7"
    assert body["metadata"]["annotations"] == {
        names.POD_GROUP_CRD_REVISION: str(crds.REVISION)
    }  # to apply leaves the rest
    assert body["spec"] == crds.manifest(PLUGINS)["spec"]


def changed(group: str, **version: Any) -> Json:
    crd = stored(group)
    crd["spec"]["versions"][0] |= version
    return crd


OPEN = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


@pytest.mark.parametrize(
    ("crd", "why"),
    [
        (stored(PLUGINS), ""),
        (stored(KEP24), ""),
        (
            changed(PLUGINS, name="v1"),
            "the CRD podgroups.scheduling.x-k8s.io serves v1, and only v1alpha1 is known here",
        ),
        (changed(SIGS, served=False), "serves nothing, and only v1alpha1"),
        (changed(PLUGINS, schema={"openAPIV3Schema": {"type": "object"}}), "has no spec.minMember in v1alpha1"),
        (changed(KEP24, schema={"openAPIV3Schema": {"type": "object"}}), "has no spec.minMembers in v1alpha1"),
        (changed(SIGS, schema={"openAPIV3Schema": OPEN}), ""),
        (changed(SIGS, schema={"openAPIV3Schema": {"type": "object", "properties": {"spec": OPEN}}}), ""),
        ({"metadata": {"name": "podgroups.x"}, "spec": {"group": PLUGINS, "versions": "nonsense"}}, "serves nothing"),
    ],
)
def test_a_crd_with_which_groups_cannot_be_said_is_reported(crd: Json, why: str) -> None:
    reported = crds.why_unusable(crd)
    assert (why in reported) if why else (reported == "")


def test_only_the_ways_that_have_pod_groups_need_crds() -> None:
    assert set(crds.needed_crds(list(Format))) == set(crds.GROUPS)
    assert crds.needed_crds([Format.ALIBABA, Format.KOORDINATOR_ANNOTATIONS]) == ()
    assert crds.needed_crds([Format.KEP_24]) == ("podgroups.incubator.scheduling.k8s.io",)
