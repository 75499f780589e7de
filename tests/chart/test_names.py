"""How the objects are called, wherever the chart is installed and whatever the release is called."""

import pytest

from jobset_gate import names
from tests.chart.helm import Helm, at, merged
from tests.chart.samples import SAMPLES
from webhook import registration

LONGEST = "r" * 53
"""Helm allows no longer name of a release."""


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("jobset-gate", {}, "jobset-gate"),
        ("my-jobset-gate-2", {}, "my-jobset-gate-2"),
        ("gates", {}, "gates-jobset-gate"),
        ("gates", {"nameOverride": "barrier"}, "gates-barrier"),
        ("gates", {"fullnameOverride": "door"}, "door"),
        (LONGEST, {}, "r" * 52),
        ("r" * 51, {}, "r" * 51),  # no dash at the end
    ],
)
def test_everything_is_called_after_the_release(helm4: Helm, release: str, values: dict[str, str], name: str) -> None:
    found = helm4.render(values, release=release)
    called = {one["metadata"]["name"] for one in found.kind("Deployment") + found.kind("Service")}
    assert called == {f"{name}-webhook", f"{name}-controller", f"{name}-stream"}
    assert {one["metadata"]["name"] for one in found.kind("ServiceAccount")} >= {
        f"{name}-webhook",
        f"{name}-controller",
    }
    assert found.one("ConfigMap")["metadata"]["name"] == name
    assert found.one("Secret")["metadata"]["name"] == f"{name}-ca"


def test_what_is_there_once_per_cluster_has_fixed_names(helm4: Helm) -> None:
    """Helm refuses a second installation for them."""
    found = helm4.render(release="gates", namespace="elsewhere")
    mutating = {one["metadata"]["name"] for one in found.kind("MutatingWebhookConfiguration")}
    assert mutating == {registration.MUTATING, names.POD_WEBHOOK}
    assert found.one("ValidatingWebhookConfiguration")["metadata"]["name"] == registration.VALIDATING
    assert found.one("Lease")["metadata"]["name"] == names.LEASE


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_longest_name_of_a_release_fits(helm4: Helm, sample: str) -> None:
    found = helm4.render(SAMPLES[sample], release=LONGEST)
    for one in found.all:
        kept_short = one["kind"] in {"Service", "Pod", "Job", "Deployment"}
        assert len(one["metadata"]["name"]) <= (63 if kept_short else 253)
        assert all(len(value) <= 63 for value in one["metadata"].get("labels", {}).values())


@pytest.mark.parametrize("sample", SAMPLES)
def test_everything_of_a_namespace_is_in_the_release_s(helm4: Helm, sample: str) -> None:
    found = helm4.render(SAMPLES[sample], namespace="ml-platform")
    cluster_wide = {
        "ClusterRole",
        "ClusterRoleBinding",
        "MutatingWebhookConfiguration",
        "ValidatingWebhookConfiguration",
        "ValidatingAdmissionPolicy",
        "ValidatingAdmissionPolicyBinding",
    }
    for one in found.all:
        if one["kind"] in cluster_wide:
            assert "namespace" not in one["metadata"]
            continue
        if one["metadata"].get("annotations", {}).get("helm.sh/hook") == "test" and one["kind"].startswith("Role"):
            continue  # test_helm_test.py says where
        if one["metadata"].get("labels"):
            assert one["metadata"]["namespace"] == "ml-platform", one
    assert "jobset-gate-system" not in helm4.text(SAMPLES[sample], namespace="ml-platform")


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_object_says_whose_it_is(helm4: Helm, sample: str) -> None:
    found = helm4.render(merged(SAMPLES[sample], {"extraObjects": []}), release="gates")
    for one in found.all:
        labels = one["metadata"]["labels"]
        assert labels["app.kubernetes.io/name"] == "jobset-gate"
        assert labels["app.kubernetes.io/instance"] == "gates"
        assert labels["app.kubernetes.io/managed-by"] == "Helm"
        assert labels["app.kubernetes.io/version"] == "0.1.0"
        assert labels["helm.sh/chart"] == "jobset-gate-0.1.0"
        assert labels.get("app.kubernetes.io/component") in {"webhook", "controller", None}


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_what_selects_the_pods_never_changes(helm4: Helm, component: str) -> None:
    """A Deployment's selector is immutable: no value and no version may be in it."""
    found = helm4.render(at("commonLabels.a", "b"))
    mine = {
        "app.kubernetes.io/name": "jobset-gate",
        "app.kubernetes.io/instance": "jobset-gate",
        "app.kubernetes.io/component": component,
    }
    assert found.deployment(component)["spec"]["selector"] == {"matchLabels": mine}
    assert mine.items() <= found.pod(component)["metadata"]["labels"].items()


def test_common_labels_are_on_everything(helm4: Helm) -> None:
    found = helm4.render(merged(SAMPLES["everything"], {"extraObjects": []}))
    assert all(one["metadata"]["labels"]["cost"] == "42" for one in found.all)
    assert all(one["spec"]["template"]["metadata"]["labels"]["cost"] == "42" for one in found.kind("Deployment"))


def test_a_pod_s_own_label_wins_over_the_common_one(helm4: Helm) -> None:
    found = helm4.render(merged(at("commonLabels.team", "a"), at("webhook.podLabels.team", "b")))
    assert found.pod("webhook")["metadata"]["labels"]["team"] == "b"
    assert found.pod("controller")["metadata"]["labels"]["team"] == "a"


def test_a_new_chart_for_the_same_program_starts_no_pod_anew(helm4: Helm) -> None:
    found = helm4.render()
    for component in ("webhook", "controller"):
        assert "helm.sh/chart" not in found.pod(component)["metadata"]["labels"]
