"""ServiceMonitor, PodMonitor, PrometheusRule and dashboard find what they ask and carry the files as they are."""

import json
from typing import Any, Final

import pytest
import yaml

from tests.chart.helm import CHART, Helm, Json, RenderedObjects, at, merged
from tests.chart.test_certificates import MODES

MONITORS: Final = {
    "serviceMonitor": ("ServiceMonitor", "endpoints"),
    "podMonitor": ("PodMonitor", "podMetricsEndpoints"),
}
CA: Final = {"own": "jobset-gate-ca", "certManager": "jobset-gate-webhook-tls", "secret": "webhook-tls"}
"""Which Secret has it, by the mode of certificates."""


def monitored(helm: Helm, monitor: str, **values: Any) -> RenderedObjects:
    return helm.render(at(f"metrics.{monitor}", {"enabled": True, **values}))


def endpoint(found: RenderedObjects, monitor: str, component: str) -> Json:
    kind, key = MONITORS[monitor]
    (only,) = found.one(kind, f"jobset-gate-{component}")["spec"][key]
    return dict(only)


@pytest.mark.parametrize("monitor", MONITORS)
@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_a_monitor_has_the_fields_that_the_operator_knows(helm4: Helm, monitor: str, component: str) -> None:
    kind, key = MONITORS[monitor]
    full = {"interval": "9s", "scrapeTimeout": "3s", "relabelings": [{"action": "drop"}], "metricRelabelings": [{}]}
    spec = monitored(helm4, monitor, **full).one(kind, f"jobset-gate-{component}")["spec"]
    assert (spec.keys(), spec["selector"].keys()) == ({"selector", key}, {"matchLabels"})
    (found,) = spec[key]
    assert found | full == found
    assert found.keys() - full.keys() <= {"port", "path", "scheme", "tlsConfig"}


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_a_pod_monitor_selects_the_pods_and_a_port_of_theirs(helm4: Helm, component: str) -> None:
    found = monitored(helm4, "podMonitor")
    spec = found.one("PodMonitor", f"jobset-gate-{component}")["spec"]
    assert spec["selector"] == found.deployment(component)["spec"]["selector"]
    ports = [port["name"] for port in found.container(component)["ports"]]
    assert endpoint(found, "podMonitor", component)["port"] in ports


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_a_service_monitor_selects_one_service_with_that_port(helm4: Helm, component: str) -> None:
    """The gate stream's Service has the controller's labels, too, but no port of that name."""
    found = monitored(helm4, "serviceMonitor")
    wanted = found.one("ServiceMonitor", f"jobset-gate-{component}")["spec"]["selector"]["matchLabels"]
    port = endpoint(found, "serviceMonitor", component)["port"]
    (service,) = [
        one
        for one in found.kind("Service")
        if wanted.items() <= one["metadata"]["labels"].items() and port in [p["name"] for p in one["spec"]["ports"]]
    ]
    assert service["spec"]["selector"] == found.deployment(component)["spec"]["selector"]["matchLabels"]
    target = next(one["targetPort"] for one in service["spec"]["ports"] if one["name"] == port)
    assert target in [one["name"] for one in found.container(component)["ports"]]


@pytest.mark.parametrize("monitor", MONITORS)
def test_the_controller_is_scraped_in_plain_text_and_the_webhook_with_its_ca(helm4: Helm, monitor: str) -> None:
    for mode, secret in CA.items():
        found = helm4.render(merged(MODES[mode], at(f"metrics.{monitor}.enabled", True)))
        assert endpoint(found, monitor, "controller")["scheme"] == "http"
        scraped = endpoint(found, monitor, "webhook")
        assert scraped["scheme"] == "https"
        assert scraped["tlsConfig"] == {
            "serverName": "jobset-gate-webhook.jobset-gate-system.svc",
            "ca": {"secret": {"name": secret, "key": "ca.crt"}},
        }


def test_the_rules_are_the_file_of_alerts(helm4: Helm) -> None:
    """Prometheus' own templates in it are none of Helm's."""
    rule = helm4.render(at("metrics.prometheusRule.enabled", True)).one("PrometheusRule")
    alerts = yaml.safe_load((CHART / "files" / "alerts.yaml").read_text())
    assert rule["spec"] == alerts
    assert set(alerts) == {"groups"}
    assert "{{ $" in str(alerts)


def test_the_dashboard_is_the_file_and_grafana_s_sidecar_finds_it(helm4: Helm) -> None:
    found = helm4.render(at("metrics.dashboards.enabled", True)).one("ConfigMap", "jobset-gate-dashboard")
    assert found["metadata"]["labels"]["grafana_dashboard"] == "1"
    (name,) = found["data"]
    assert name == "jobset-gate.json"
    assert json.loads(found["data"][name]) == json.loads((CHART / "files" / "dashboard.json").read_text())
    assert len(found["data"][name]) < 900_000  # a ConfigMap holds a mebibyte


def test_a_cluster_without_the_operator_gets_none_of_it(helm4: Helm) -> None:
    assert "monitoring.coreos.com" not in helm4.text()
    services = {one["metadata"]["name"] for one in helm4.render().kind("Service")}
    assert services == {"jobset-gate-stream", "jobset-gate-webhook"}
