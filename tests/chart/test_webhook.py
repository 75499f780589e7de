"""The webhook's Deployment and Service."""

from typing import Any

import pytest

from tests.chart.helm import Helm, RenderedObjects, at, merged


def args(found: RenderedObjects) -> list[str]:
    return list(found.container("webhook")["args"])


def test_two_replicas_and_never_fewer_while_rolling(helm4: Helm) -> None:
    spec = helm4.render().deployment("webhook")["spec"]
    assert spec["replicas"] == 2
    assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}


def test_it_listens_where_private_clusters_let_the_api_server_in(helm4: Helm) -> None:
    found = helm4.render()
    assert found.container("webhook")["ports"] == [{"name": "admission", "containerPort": 10250, "protocol": "TCP"}]
    assert "--port=10250" in args(found)
    assert "--host=0.0.0.0" in args(found)
    service = found.one("Service", "jobset-gate-webhook")["spec"]
    assert service["ports"] == [{"name": "admission", "port": 443, "targetPort": "admission", "protocol": "TCP"}]
    assert service["selector"] == found.deployment("webhook")["spec"]["selector"]["matchLabels"]


def test_another_port_is_everywhere_the_same(helm4: Helm) -> None:
    found = helm4.render(merged(at("webhook.port", 9443), at("networkPolicy.enabled", True)))
    assert found.container("webhook")["ports"][0]["containerPort"] == 9443
    assert "--port=9443" in args(found)
    (rule,) = found.one("NetworkPolicy", "jobset-gate-webhook")["spec"]["ingress"]
    assert rule["ports"] == [{"port": 9443, "protocol": "TCP"}]


def test_it_goes_on_answering_until_nobody_asks_any_more(helm4: Helm) -> None:
    """Not ready for a while, then five seconds for what is under way; only then would the kubelet kill it."""
    found = helm4.render(
        merged(at("webhook.shutdownDelaySeconds", 12), at("webhook.terminationGracePeriodSeconds", 40))
    )
    assert "--shutdown-delay=12" in args(found)
    assert found.pod("webhook")["spec"]["terminationGracePeriodSeconds"] == 40


@pytest.mark.parametrize(
    ("probe", "path", "periods"),
    [
        ("livenessProbe", "/healthz", {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}),
        ("readinessProbe", "/readyz", {"periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 3}),
    ],
)
def test_it_is_probed_over_https(helm4: Helm, probe: str, path: str, periods: dict[str, int]) -> None:
    asked = {"httpGet": {"path": path, "port": "admission", "scheme": "HTTPS"}}
    assert helm4.render().container("webhook")[probe] == asked | periods
    patient = helm4.render(at(f"webhook.{probe}.timeoutSeconds", 9)).container("webhook")[probe]
    assert patient == asked | periods | {"timeoutSeconds": 9}


def test_its_temporary_files_are_in_memory(helm4: Helm) -> None:
    found = helm4.render()
    (volume,) = [one for one in found.pod("webhook")["spec"]["volumes"] if one["name"] == "tmp"]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Mi"}
    assert {"name": "tmp", "mountPath": "/tmp"} in found.container("webhook")["volumeMounts"]  # noqa: S108 - in a pod
    assert {"name": "TMPDIR", "value": "/tmp"} in found.container("webhook")["env"]  # noqa: S108 - as above


def test_it_reads_its_settings(helm4: Helm) -> None:
    found = helm4.render()
    assert "--config=/etc/jobset-gate/settings.yaml" in args(found)
    mounted = {"name": "settings", "mountPath": "/etc/jobset-gate", "readOnly": True}
    assert mounted in found.container("webhook")["volumeMounts"]
    assert {"name": "settings", "configMap": {"name": "jobset-gate"}} in found.pod("webhook")["spec"]["volumes"]


@pytest.mark.parametrize(
    ("key", "flag", "value"), [("level", "log-level", "debug"), ("format", "log-format", "console")]
)
@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_logs_are_as_asked_for(helm4: Helm, component: str, key: str, flag: str, value: Any) -> None:
    assert f"--{flag}={'info' if key == 'level' else 'json'}" in helm4.render().container(component)["args"]
    assert f"--{flag}={value}" in helm4.render(at(f"logging.{key}", value)).container(component)["args"]
