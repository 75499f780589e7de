"""The webhook configurations of the chart are those that the program would register, without a caBundle."""

from typing import Any

import pytest

from jobset_gate import names, settings
from jobset_gate.podgroups.model import Format
from tests.chart.helm import Helm, Json, RenderedObjects, at
from tests.chart.samples import SAMPLES
from webhook import registration

ALWAYS = {registration.MUTATING, registration.VALIDATING}
BY_DEFAULT = ALWAYS | {names.POD_WEBHOOK}
VALUES: list[tuple[Json, set[str]]] = [
    ({}, BY_DEFAULT),
    ({"webhook": {"failurePolicy": "Ignore", "timeoutSeconds": 12}}, BY_DEFAULT),
    *(({"groups": {"ways": [way.value]}}, BY_DEFAULT) for way in Format),
    ({"groups": {"ways": ["kep-24", "scheduler-plugins"]}}, BY_DEFAULT),
    ({"groups": {"ways": ["koordinator-annotations", "alibaba"]}}, BY_DEFAULT),
    ({"groups": {"schedulerNames": ["another"]}}, BY_DEFAULT),
    ({"groups": {"schedulerNames": ["default-scheduler", "my.own_one"]}}, BY_DEFAULT),
    ({"groups": {"enabled": False}}, ALWAYS),
    ({"gangs": {"sources": ["jobset"]}}, BY_DEFAULT),
    ({"gangs": {"sources": ["jobset", "lws"]}}, BY_DEFAULT | {names.BARRIER_POD_WEBHOOK}),
    ({"gangs": {"sources": ["jobset", "job", "lws", "startgroup"]}}, BY_DEFAULT | {names.BARRIER_POD_WEBHOOK}),
    *(
        (
            {"gangs": {"sources": ["jobset", "startgroup"], "podFailurePolicy": policy}, "webhook": webhook},
            BY_DEFAULT | {names.BARRIER_POD_WEBHOOK},
        )
        # The last as in an upgrade with --reuse-values from a chart that did not know the value.
        for policy, webhook in (("Fail", {"failurePolicy": "Ignore"}), ("Ignore", {}), (None, {}))
    ),
]


def expected(namespace: str, values: Json) -> dict[str, Json]:
    given = {key: value for key, value in values.get("gangs", {}).items() if value is not None}
    wanted = settings.load({"groups": values.get("groups", {}), "gangs": given})
    webhook: Json = values.get("webhook", {})
    where: Any = {
        "service": registration.ServiceReference(namespace, "jobset-gate-webhook"),
        "own_namespace": namespace,
        "failure_policy": webhook.get("failurePolicy", "Fail"),
        "timeout_seconds": webhook.get("timeoutSeconds", 5),
    }
    made = [
        *registration.configurations(wanted.gangs, **where),
        registration.barrier_pod_configuration(wanted.gangs, **where),
        registration.pod_configuration(wanted.groups, **where),
    ]
    return {one["metadata"]["name"]: one for one in made}


def configurations(found: RenderedObjects) -> dict[str, Json]:
    """By name."""
    return {one["metadata"]["name"]: one for one in found.all if one["kind"].endswith("WebhookConfiguration")}


@pytest.mark.parametrize("namespace", ["jobset-gate-system", "kube-system", "default"])
def test_they_are_what_the_program_would_register(helm4: Helm, namespace: str) -> None:
    """Text by text: which workloads and pods are sent, and what follows where the webhook does not answer."""
    for values, there in VALUES:
        found, ours = configurations(helm4.render(values, namespace=namespace)), expected(namespace, values)
        assert set(found) == there, values
        for name, rendered in found.items():
            assert set(rendered) == set(ours[name]), name
            assert {key: rendered[key] for key in ("apiVersion", "kind", "webhooks")}.items() <= ours[name].items(), (
                name
            )


def test_no_ca_bundle_and_no_data_of_a_secret_is_rendered(helm4: Helm) -> None:
    """The manager of the certificate writes them; Helm 4 would conflict over fields that it owns."""
    for values in SAMPLES.values():
        found = helm4.render(values)
        for one in configurations(found).values():
            assert all("caBundle" not in hook["clientConfig"] for hook in one["webhooks"])
        assert all(not {"data", "stringData"} & set(one) for one in found.kind("Secret"))


def test_the_service_is_the_one_of_the_chart(helm4: Helm) -> None:
    found = helm4.render(at("fullnameOverride", "full"), namespace="ml")
    service = found.one("Service", "full-webhook")
    for hook in (hook for one in configurations(found).values() for hook in one["webhooks"]):
        asked = hook["clientConfig"]["service"]
        assert (asked["name"], asked["namespace"]) == ("full-webhook", service["metadata"]["namespace"])
        assert asked["port"] in [port["port"] for port in service["spec"]["ports"]]
