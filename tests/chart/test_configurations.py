"""The webhook configurations of the chart are those that the program would register, without a caBundle."""

from typing import Any

import pytest

from jobset_gate import names, settings
from jobset_gate.podgroups.model import Format
from tests.chart.helm import Helm, Json, RenderedObjects, at, merged
from tests.chart.samples import SAMPLES
from webhook import registration

NAMES = (registration.MUTATING, registration.VALIDATING, names.POD_WEBHOOK)
OTHERS = {
    "ways": [[way.value] for way in Format] + [["kep-24", "scheduler-plugins"], ["koordinator-annotations", "alibaba"]],
    "schedulerNames": [["another"], ["default-scheduler", "my.own_one"]],
}


def expected(namespace: str, groups: Json | None = None, gangs: Json | None = None, **given: Any) -> list[Json]:
    where: Json = {
        "service": registration.ServiceReference(namespace, "jobset-gate-webhook"),
        "own_namespace": namespace,
    }
    wanted = settings.load({"groups": groups or {}, "gangs": gangs or {}})
    return [
        *registration.configurations(wanted.gangs, **where, **given),
        *([registration.barrier_pod_configuration(wanted.gangs, **where, **given)] if wanted.gangs.gates_pods else []),
        registration.pod_configuration(wanted.groups, **where, **given),
    ]


def configurations(found: RenderedObjects) -> dict[str, Json]:
    """By name."""
    return {one["metadata"]["name"]: one for one in found.all if one["kind"].endswith("WebhookConfiguration")}


@pytest.mark.parametrize("namespace", ["jobset-gate-system", "kube-system", "default"])
def test_they_are_what_the_program_would_register(helm: Helm, namespace: str) -> None:
    found = configurations(helm.render(namespace=namespace))
    assert set(found) == set(NAMES)
    for ours in expected(namespace):
        rendered = found[ours["metadata"]["name"]]
        assert (rendered["apiVersion"], rendered["kind"]) == (ours["apiVersion"], ours["kind"])
        assert rendered["webhooks"] == ours["webhooks"]
        assert set(rendered) == set(ours)


def test_what_may_be_configured_is_the_same_too(helm4: Helm) -> None:
    found = configurations(helm4.render({"webhook": {"failurePolicy": "Ignore", "timeoutSeconds": 12}}))
    for ours in expected("jobset-gate-system", failure_policy="Ignore", timeout_seconds=12):
        assert found[ours["metadata"]["name"]]["webhooks"] == ours["webhooks"]


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in OTHERS.items() for value in values])
def test_pods_are_sent_by_the_same_conditions(helm4: Helm, key: str, value: list[str]) -> None:
    """Text by text: which ways are on, and for whose pods."""
    found = configurations(helm4.render({"groups": {key: value}}))
    *_, ours = expected("jobset-gate-system", {key: value})
    assert found[names.POD_WEBHOOK]["webhooks"] == ours["webhooks"]


def test_only_workloads_of_the_enabled_sources_are_sent(helm4: Helm) -> None:
    gangs = {"sources": ["jobset"]}
    found = configurations(helm4.render({"gangs": gangs}))
    for ours in expected("jobset-gate-system", gangs=gangs):
        assert found[ours["metadata"]["name"]]["webhooks"] == ours["webhooks"]
    assert all(len(one["webhooks"]) == 1 for one in found.values())


@pytest.mark.parametrize("namespace", ["jobset-gate-system", "kube-system"])
@pytest.mark.parametrize("policy", ["Fail", "Ignore", None])
def test_pods_of_start_groups_are_sent_under_their_own_failure_policy(
    helm: Helm, namespace: str, policy: str | None
) -> None:
    """None: as in an upgrade with --reuse-values from a chart that did not know the value."""
    gangs = {"sources": ["jobset", "startgroup"], "podFailurePolicy": policy}
    webhook = {"failurePolicy": "Ignore" if policy == "Fail" else "Fail", "timeoutSeconds": 12}
    found = configurations(helm.render({"gangs": gangs, "webhook": webhook}, namespace=namespace))
    assert set(found) == {*NAMES, names.BARRIER_POD_WEBHOOK}
    given: Json = {"failure_policy": webhook["failurePolicy"], "timeout_seconds": 12}
    for ours in expected(namespace, gangs=gangs | {"podFailurePolicy": policy or "Fail"}, **given):
        assert found[ours["metadata"]["name"]]["webhooks"] == ours["webhooks"]


def test_without_groups_no_pod_is_ever_sent(helm4: Helm) -> None:
    found = configurations(helm4.render(at("groups.enabled", False)))
    assert set(found) == {registration.MUTATING, registration.VALIDATING}


def test_no_ca_bundle_and_no_data_of_a_secret_is_rendered(helm4: Helm) -> None:
    """The manager of the certificate writes them; Helm 4 would conflict over fields that it owns."""
    for values in SAMPLES.values():
        found = helm4.render(values)
        for one in configurations(found).values():
            assert all("caBundle" not in hook["clientConfig"] for hook in one["webhooks"])
        assert all(not {"data", "stringData"} & set(one) for one in found.kind("Secret"))


def test_the_service_is_the_one_of_the_chart(helm4: Helm) -> None:
    found = helm4.render(merged(at("fullnameOverride", "full")), namespace="ml")
    service = found.one("Service", "full-webhook")
    for hook in (hook for one in configurations(found).values() for hook in one["webhooks"]):
        asked = hook["clientConfig"]["service"]
        assert (asked["name"], asked["namespace"]) == ("full-webhook", service["metadata"]["namespace"])
        assert asked["port"] in [port["port"] for port in service["spec"]["ports"]]
