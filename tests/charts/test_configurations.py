"""The webhook configurations of the chart are those of webhook/registration.py, without a caBundle."""

from typing import Any

import pytest

from tests.charts.helm import Helm, Json, at, merged
from tests.charts.samples import SAMPLES
from webhook import registration

KINDS = ("MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")


def expected(namespace: str, **given: Any) -> dict[str, Json]:
    service = registration.Service(namespace, "jobset-gate-webhook")
    made = registration.configurations(service=service, own_namespace=namespace, **given)
    return {one["kind"]: one for one in made}


@pytest.mark.parametrize("namespace", ["jobset-gate-system", "kube-system", "default"])
def test_they_are_what_the_program_would_register(helm: Helm, namespace: str) -> None:
    found = helm.render(namespace=namespace)
    for kind, ours in expected(namespace).items():
        rendered = found.one(kind)
        assert rendered["apiVersion"] == ours["apiVersion"]
        assert rendered["metadata"]["name"] == ours["metadata"]["name"]
        assert rendered["webhooks"] == ours["webhooks"]
        assert set(rendered) == set(ours)


def test_what_may_be_configured_is_the_same_too(helm4: Helm) -> None:
    found = helm4.render({"webhook": {"failurePolicy": "Ignore", "timeoutSeconds": 12}})
    for kind, ours in expected("jobset-gate-system", failure_policy="Ignore", timeout_seconds=12).items():
        assert found.one(kind)["webhooks"] == ours["webhooks"]


@pytest.mark.parametrize("sample", SAMPLES)
def test_there_is_never_a_ca_bundle_nor_the_data_of_a_secret(helm4: Helm, sample: str) -> None:
    """Whoever manages the certificate writes them; Helm 4 would fight over what it had said itself."""
    found = helm4.render(SAMPLES[sample])
    for kind in KINDS:
        assert all("caBundle" not in hook["clientConfig"] for hook in found.one(kind)["webhooks"])
    assert all(not {"data", "stringData"} & set(one) for one in found.kind("Secret"))


def test_the_service_is_the_one_of_the_chart(helm4: Helm) -> None:
    found = helm4.render(merged(at("fullnameOverride", "door")), namespace="ml")
    service = found.one("Service", "door-webhook")
    for kind in KINDS:
        (hook,) = found.one(kind)["webhooks"]
        asked = hook["clientConfig"]["service"]
        assert (asked["name"], asked["namespace"]) == ("door-webhook", service["metadata"]["namespace"])
        assert asked["port"] in [port["port"] for port in service["spec"]["ports"]]
