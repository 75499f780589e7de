"""Each value of values.yaml does something: another one makes another rendering."""

from functools import reduce
from typing import Any, Final

import pytest

from tests.chart.helm import Helm, Json, at, defaults, leaves, merged

_PEER: Final[list[Json]] = [{"podSelector": {}}]
_PAGE: Final = {"enabled": True, "tlsSecretName": "page"}
_ROUTE: Final = {"httpRoute": {"enabled": True, "parentRefs": [{"name": "gateway"}]}}

OTHERS: Final[dict[str, Any]] = {
    # By path or its last part, where `another` finds none.
    "affinity": {"podAffinity": {}},
    "apiServerPorts": [16443],
    "admissionPolicies.enabled": False,
    "barrier.image": "alpine:3.22",
    "caDuration": "48h",
    "capacityCheck": "Off",
    "certificates.mode": "certManager",
    "cpu": 2,
    "digest": "sha256:" + "b" * 64,
    "dnsConfig": {"searches": ["a"]},
    "dnsPorts": [5353],
    "drop": ["NET_RAW"],
    "endpoint": "http://otel:9000",
    "extraArgs": ["--log-level=debug"],
    "extraEgress": [{}],
    "extraEnv": [{"name": "A", "value": "b"}],
    "extraIngress": [{}],
    "extraObjects": [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}],
    "extraVolumeMounts": [{"name": "a", "mountPath": "/a"}],
    "extraVolumes": [{"name": "a", "emptyDir": {}}],
    "failurePolicy": "Ignore",
    "grafana_dashboard": "2",
    "hostnames": ["gangs.example.com"],
    "imagePullSecrets": [{"name": "a"}],
    "interval": "9s",
    "issuerRef": {"name": "x"},
    "leafDuration": "12h",
    "listenAddress": "::",
    "logging.format": "console",
    "logging.level": "debug",
    "maxWaitSeconds": 9,
    "memory": "1Gi",
    "metricRelabelings": [{"action": "labeldrop"}],
    "metricsFrom": _PEER,
    "minAvailable": 1,
    "native": "On",
    "pageFrom": _PEER,
    "parentRefs": [{"name": "another"}],
    "podFailurePolicy": "Ignore",
    "prices": {"nvidia.com/gpu": 2.5},
    "pullPolicy": "Always",
    "relabelings": [{"action": "labeldrop"}],
    "repository": "team/gate",
    "resources": {"limits": {"cpu": "5m"}},
    "schedulerNames": ["another"],
    "scrapeTimeout": "9s",
    "secretName": "another",
    "seccompProfile.type": "Unconfined",
    "sources": ["jobset"],
    "strategy.type": "Recreate",
    "streamFrom": _PEER,
    "streamUrl": "http://elsewhere:80",
    "tlsSecretName": "another",
    "tolerations": [{"operator": "Exists"}],
    "topologySpreadConstraints": [{"topologyKey": "rack"}],
    "ways": ["alibaba"],
}
ALWAYS: Final = merged(
    at("networkPolicy.enabled", True),
    at("metrics.prometheusRule.enabled", True),
    at("metrics.dashboards.enabled", True),
    at("crds.keep", False),
)
NEEDS: Final[dict[str, Json]] = {
    # Values that mean something only together with others, by the beginning of their paths.
    "controller.leaderElection.enabled": at("controller.replicaCount", 1),
    "webhook.certificates.secretName": at("webhook.certificates", {"mode": "secret", "secretName": "y"}),
    "webhook.certificates.issuerRef": at("webhook.certificates.mode", "certManager"),
    "gangs.podFailurePolicy": at("gangs.sources", ["jobset", "startgroup"]),
    "tracing.endpoint": at("tracing.enabled", True),
    "statusPage.httpRoute": at("statusPage", _PAGE | _ROUTE),
    "statusPage.p": at("statusPage", _PAGE),
    "statusPage.tlsSecretName": at("statusPage", _PAGE),
    "networkPolicy.pageFrom": at("statusPage", _PAGE),
    "metrics.serviceMonitor.": at("metrics.serviceMonitor.enabled", True),
    "metrics.podMonitor.": at("metrics.podMonitor.enabled", True),
}
PATHS: Final = [path for path in leaves(defaults()) if path != "global"]
COMPONENTS: Final = ("webhook", "controller")


def another(path: str, value: Any) -> Any:
    for key, other in OTHERS.items():
        if f".{path}".endswith(f".{key}"):
            return other
    if isinstance(value, bool):
        return not value
    return value + 1 if isinstance(value, int | float) else {"": "another", "{}": {"a": "b"}}[str(value)]


def differing(helm: Helm, base: Json, values: Json) -> list[str]:
    """Names of the objects that other values change, add or take away."""
    before, after = helm.render(base).all, helm.render(merged(base, values)).all
    return [one["metadata"]["name"] for one in [*before, *after] if one not in before or one not in after]


@pytest.mark.parametrize("path", PATHS)
def test_another_value_makes_another_installation(helm4: Helm, path: str) -> None:
    base = merged(ALWAYS, *(needed for beginning, needed in NEEDS.items() if path.startswith(beginning)))
    value = reduce(lambda part, key: part[key], path.split("."), merged(defaults(), base))
    changed = differing(helm4, base, at(path, another(path, value)))
    assert changed
    component, _, own = path.partition(".")
    if component in COMPONENTS and all(f"{it}.{own}" in PATHS for it in COMPONENTS):
        (other,) = set(COMPONENTS) - {component}
        assert any(component in name for name in changed)
        assert not any(other in name for name in changed)


@pytest.mark.parametrize(
    ("own", "shared"), [("image.registry", "global.imageRegistry"), ("imagePullSecrets", "global.imagePullSecrets")]
)
def test_a_value_for_all_charts_counts_here_too(helm4: Helm, own: str, shared: str) -> None:
    value = another(own, "")
    assert helm4.render(at(shared, value)).all == helm4.render(at(own, value)).all
