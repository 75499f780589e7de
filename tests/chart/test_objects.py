"""All objects together: the same from both Helms, valid against Kubernetes' schemas, named and labelled alike."""

import re
from functools import cache
from typing import Final

import kubernetes_validate.utils
import pytest

from tests.chart.helm import CHART, NAMESPACE, Helm, Json, at, merged
from tests.chart.samples import SAMPLES
from tests.tools import catalog

LONGEST: Final = "r" * 53
"""Helm allows no longer name of a release."""
FOREIGN: Final = {
    "monitoring.coreos.com/v1": {"ServiceMonitor", "PodMonitor", "PrometheusRule"},
    "cert-manager.io/v1": {"Issuer", "Certificate"},
}
"""Kinds whose schemas come with their operators; test_monitoring.py and test_certificates.py check them."""
CLUSTER_WIDE: Final = {
    "ClusterRole",
    "ClusterRoleBinding",
    "MutatingWebhookConfiguration",
    "ValidatingWebhookConfiguration",
    "ValidatingAdmissionPolicy",
    "ValidatingAdmissionPolicyBinding",
}

# --- Helm 3 and Helm 4 -----------------------------------------------------------------------------------------------


def test_lint_finds_nothing(helm: Helm) -> None:
    said = helm.run("lint", "--strict", str(CHART))
    assert "1 chart(s) linted, 0 chart(s) failed" in said
    assert not re.search(r"\[(WARNING|ERROR)\]", said), said
    assert helm.run("version", "--short").startswith(f"v{helm.major}.")
    assert catalog.helm(helm.major) == helm.binary


def test_both_helms_render_the_same_objects_and_the_same_bytes_again(helm: Helm, helm4: Helm) -> None:
    def objects(by: Helm, values: Json) -> list[str]:
        return sorted(map(str, by.render(values).all))

    for sample, values in SAMPLES.items():
        assert objects(helm, values) == objects(helm4, values), sample
    everything = SAMPLES["everything"]
    assert helm.text(everything) == helm.text(everything)


OF_PODS = ("barrier-pods", "podFailurePolicy")
MARKS = {
    "startgroup": ("start-group", "startgroup", "start.group"),
    "lws": ("leaderworkerset", "lws", ".lws.group", "values: [lws]"),
}


@pytest.mark.parametrize("sources", [["jobset"], ["jobset", "job"]])
def test_without_a_source_that_gates_pods_not_a_byte_is_rendered_for_it(helm4: Helm, sources: list[str]) -> None:
    """So that an upgrade restarts no pod and changes no right of an installation that does not use it."""
    text = helm4.text({"gangs": {"sources": sources}})
    every = [*OF_PODS, *(mark for marks in MARKS.values() for mark in marks)]
    assert [mark for mark in every if mark in text] == []
    for policy in ("Ignore", None):
        assert helm4.text({"gangs": {"sources": sources, "podFailurePolicy": policy}}) == text
    for source, marks in MARKS.items():
        on = helm4.text({"gangs": {"sources": [*sources, source]}})
        assert [mark for mark in every if mark in on] == [*OF_PODS, *marks]


def test_kubernetes_from_1_30_on_is_accepted(helm: Helm) -> None:
    assert all(helm.render(kubernetes=it).kind("Deployment") for it in ("1.30.0", "1.30.0-gke.100", "v1.36.3"))
    assert "chart requires kubeVersion: >=1.30.0-0" in helm.refusal({}, kubernetes="1.29.9")


def test_the_package_renders_the_same(helm: Helm, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Every file that the templates read is in the package."""
    folder = tmp_path_factory.mktemp("package")
    helm.run("package", str(CHART), "--destination", str(folder))
    (packed,) = folder.glob("*.tgz")
    everything = SAMPLES["everything"]
    assert helm.text(everything, chart=packed) == helm.text(everything)


# --- Schemas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.30", "1.36"])
def test_every_object_fits_its_schema(helm4: Helm, version: str, monkeypatch: pytest.MonkeyPatch) -> None:
    # Megabytes, which it reads again for each object.
    monkeypatch.setattr(kubernetes_validate.utils, "schema_contents", cache(kubernetes_validate.utils.schema_contents))
    for values in SAMPLES.values():
        found = helm4.render(values, kubernetes=f"{version}.0")
        ours = [one for one in found.all if one["kind"] not in FOREIGN.get(one["apiVersion"], ())]
        assert len(ours) >= 9
        for one in ours:
            kubernetes_validate.validate(one, version, strict=True)
    service: Json = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "x"}, "spec": {"prots": []}}
    with pytest.raises(kubernetes_validate.ValidationError):  # the schemas are there and strict
        kubernetes_validate.validate(service, version, strict=True)


# --- Names and labels ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("release", "values", "name"),
    [
        ("jobset-gate", {}, "jobset-gate"),
        ("my-jobset-gate-2", {}, "my-jobset-gate-2"),
        ("gates", {}, "gates-jobset-gate"),
        ("gates", {"nameOverride": "barrier"}, "gates-barrier"),
        ("gates", {"fullnameOverride": "full"}, "full"),
        (LONGEST, {}, "r" * 52),
        ("r" * 51, {}, "r" * 51),  # no dash at the end
    ],
)
def test_everything_is_named_after_the_release(helm4: Helm, release: str, values: dict[str, str], name: str) -> None:
    found = helm4.render(values, release=release)
    named = {one["metadata"]["name"] for one in found.kind("Deployment") + found.kind("Service")}
    assert named == {f"{name}-webhook", f"{name}-controller", f"{name}-stream"}
    accounts = {one["metadata"]["name"] for one in found.kind("ServiceAccount")}
    assert accounts >= {f"{name}-webhook", f"{name}-controller"}
    assert found.one("ConfigMap")["metadata"]["name"] == name
    assert found.one("Secret")["metadata"]["name"] == f"{name}-ca"


def test_names_are_unique_and_the_longest_name_of_a_release_fits(helm4: Helm) -> None:
    for sample, values in SAMPLES.items():
        found = helm4.render(values, release=LONGEST)
        assert len(found.names()) == len(set(found.names())), sample
        for one in found.all:
            kept_short = one["kind"] in {"Service", "Pod", "Job", "Deployment"}
            assert len(one["metadata"]["name"]) <= (63 if kept_short else 253), sample
            assert all(len(value) <= 63 for value in one["metadata"].get("labels", {}).values()), sample


def test_namespaced_objects_are_in_the_namespace_of_the_release(helm4: Helm) -> None:
    for sample, values in SAMPLES.items():
        for one in helm4.render(values, namespace="ml-platform").all:
            if one["kind"] in CLUSTER_WIDE:
                assert "namespace" not in one["metadata"], sample
                continue
            if one["metadata"].get("annotations", {}).get("helm.sh/hook") == "test" and one["kind"].startswith("Role"):
                continue  # test_helm_test.py says where
            if one["metadata"].get("labels"):
                assert one["metadata"]["namespace"] == "ml-platform", one
        assert NAMESPACE not in helm4.text(values, namespace="ml-platform"), sample


def test_every_object_has_the_recommended_labels(helm4: Helm) -> None:
    for sample, values in SAMPLES.items():
        for one in helm4.render(merged(values, {"extraObjects": []}), release="gates").all:
            labels = one["metadata"]["labels"]
            expected = {
                "app.kubernetes.io/name": "jobset-gate",
                "app.kubernetes.io/instance": "gates",
                "app.kubernetes.io/managed-by": "Helm",
                "app.kubernetes.io/version": "0.1.0",
                "helm.sh/chart": "jobset-gate-0.1.0",
            }
            assert expected.items() <= labels.items(), sample
            assert labels.get("app.kubernetes.io/component") in {"webhook", "controller", None}, sample


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_the_selector_of_a_deployment_never_changes(helm4: Helm, component: str) -> None:
    """It is immutable: no value and no version may be in it."""
    found = helm4.render(at("commonLabels.a", "b"))
    mine = {
        "app.kubernetes.io/name": "jobset-gate",
        "app.kubernetes.io/instance": "jobset-gate",
        "app.kubernetes.io/component": component,
    }
    assert found.deployment(component)["spec"]["selector"] == {"matchLabels": mine}
    assert mine.items() <= found.pod(component)["metadata"]["labels"].items()
    assert "helm.sh/chart" not in found.pod(component)["metadata"]["labels"]  # a new chart restarts no pod


def test_common_labels_are_on_everything_and_a_pods_own_label_wins(helm4: Helm) -> None:
    found = helm4.render(merged(SAMPLES["everything"], {"extraObjects": []}))
    assert all(one["metadata"]["labels"]["cost"] == "42" for one in found.all)
    assert all(one["spec"]["template"]["metadata"]["labels"]["cost"] == "42" for one in found.kind("Deployment"))
    own = helm4.render(merged(at("commonLabels.team", "a"), at("webhook.podLabels.team", "b")))
    assert own.pod("webhook")["metadata"]["labels"]["team"] == "b"
    assert own.pod("controller")["metadata"]["labels"]["team"] == "a"


def test_extra_objects_are_mappings_or_texts_with_templates(helm: Helm) -> None:
    mapping: Json = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "{{ .Release.Name }}-a"},
        "data": {"n": "1"},
    }
    text = (
        'apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {{ include "jobset-gate.fullname" . }}-b\n'
        "data:\n  port: {{ .Values.webhook.port | quote }}\n"
    )
    objects = [mapping, text, mapping | {"metadata": {"name": "c"}}]
    found = helm.render({"extraObjects": objects}, release="gates")
    assert found.one("ConfigMap", "gates-a")["data"] == {"n": "1"}
    assert found.one("ConfigMap", "gates-jobset-gate-b")["data"] == {"port": "10250"}
    assert len(found.kind("ConfigMap")) == 4
