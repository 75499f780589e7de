"""The NetworkPolicies, put to the question packet by packet: who gets in where, and what may go out."""

from typing import Final

import pytest

from tests.chart.helm import Helm, Json, RenderedObjects, at, merged

ON: Final = at("networkPolicy.enabled", True)
POD: Final[Json] = {"namespace": {"kubernetes.io/metadata.name": "team"}, "pod": {"app": "x"}}
MONITORING: Final[Json] = {"namespace": {"kubernetes.io/metadata.name": "monitoring"}, "pod": {"app": "prometheus"}}
OUTSIDE: Final = None
"""No pod: an API server, a node, the world."""


def policy(found: RenderedObjects, component: str) -> Json:
    spec = found.one("NetworkPolicy", f"jobset-gate-{component}")["spec"]
    assert spec["podSelector"] == found.deployment(component)["spec"]["selector"]
    assert spec["policyTypes"] == ["Ingress", "Egress"]
    return dict(spec)


def passes(rules: list[Json], port: int, peer: Json | None, *, side: str, protocol: str = "TCP") -> bool:
    """Whether one of the rules lets it through, as a network plugin decides it."""
    return any(
        _port(rule.get("ports"), port, protocol) and ((peers := rule.get(side)) is None or _peer(peers, peer))
        for rule in rules
    )


def _port(ports: list[Json] | None, port: int, protocol: str) -> bool:
    return ports is None or any((one["port"], one["protocol"]) == (port, protocol) for one in ports)


def _peer(peers: list[Json], who: Json | None) -> bool:
    return who is not None and any(
        "ipBlock" not in one
        and _labels(one.get("namespaceSelector"), who["namespace"])
        and _labels(one.get("podSelector"), who["pod"])
        for one in peers
    )


def _labels(selector: Json | None, labels: Json) -> bool:
    return selector is None or selector.get("matchLabels", {}).items() <= labels.items()


PAGE: Final = at("statusPage", {"enabled": True, "tlsSecretName": "x"})
KEPT: Final = at("networkPolicy.metricsFrom", [{"namespaceSelector": {"matchLabels": MONITORING["namespace"]}}])
FURTHER: Final = at("networkPolicy.extraIngress", [{"from": [{"podSelector": {}}]}])
INGRESS: Final[dict[str, tuple[Json, list[tuple[str, int, Json | None, bool]]]]] = {
    "by default": (
        {},
        [
            ("webhook", 10250, POD, True),
            ("webhook", 10250, OUTSIDE, True),  # an API server
            ("webhook", 8080, POD, False),
            ("webhook", 8082, POD, False),
            ("webhook", 443, OUTSIDE, False),
            ("controller", 8082, POD, True),
            ("controller", 8082, OUTSIDE, False),
            ("controller", 8080, MONITORING, True),
            ("controller", 8080, OUTSIDE, False),
            ("controller", 10250, POD, False),
            ("controller", 8083, POD, False),
        ],
    ),
    "metrics kept to a namespace": (
        KEPT,
        [("controller", 8080, MONITORING, True), ("controller", 8080, POD, False), ("controller", 8082, POD, True)],
    ),
    "without the stream": (at("stream.enabled", False), [("controller", 8082, POD, False)]),
    "a page within the pod": (at("statusPage.enabled", True), [("controller", 8083, POD, False)]),
    "a page with TLS": (PAGE, [("controller", 8083, POD, True), ("controller", 8083, OUTSIDE, False)]),
    "a page for nobody": (merged(PAGE, at("networkPolicy.pageFrom", [])), [("controller", 8083, POD, False)]),
    "further rules": (FURTHER, [("webhook", 9999, POD, True), ("controller", 9999, POD, True)]),
}


@pytest.mark.parametrize("case", INGRESS)
def test_who_gets_in(helm4: Helm, case: str) -> None:
    values, packets = INGRESS[case]
    found = helm4.render(merged(ON, values))
    for component, port, peer, allowed in packets:
        rules = policy(found, component)["ingress"]
        assert passes(rules, port, peer, side="from") is allowed, (component, port, peer)


def test_an_empty_list_admits_nobody(helm4: Helm) -> None:
    """An absent `from` would have been everybody."""
    values = at("networkPolicy", {"metricsFrom": [], "streamFrom": [], "pageFrom": []})
    assert policy(helm4.render(merged(ON, values, PAGE)), "controller")["ingress"] == []


def gets_out(helm: Helm, component: str, port: int, *, protocol: str = "TCP", values: Json | None = None) -> bool:
    found = helm.render(merged(ON, values or {}))
    return passes(policy(found, component)["egress"], port, OUTSIDE, side="to", protocol=protocol)


@pytest.mark.parametrize("component", ["webhook", "controller"])
def test_only_dns_the_api_server_and_what_is_added_can_be_reached(helm4: Helm, component: str) -> None:
    tried = [(port, protocol) for port in (53, 80, 443, 4317, 6443) for protocol in ("TCP", "UDP")]
    out = {it for it in tried if gets_out(helm4, component, it[0], protocol=it[1])}
    assert out == {(53, "TCP"), (53, "UDP"), (443, "TCP"), (6443, "TCP")}
    another = at("networkPolicy.apiServerPorts", [16443])
    assert gets_out(helm4, component, 16443, values=another)
    assert not gets_out(helm4, component, 6443, values=another)
    added = at("networkPolicy.extraEgress", [{"ports": [{"port": 4317, "protocol": "TCP"}]}])
    assert gets_out(helm4, component, 4317, values=added)


@pytest.mark.parametrize(
    ("endpoint", "port"),
    [
        ("", 4318),
        ("http://otel.monitoring.svc:4319", 4319),
        ("http://[fd00::1]:4319/base", 4319),
        ("http://[fd00::1]", 80),
        ("http://otel", 80),
        ("https://otel.example/otlp", 443),
    ],
)
def test_the_controller_alone_reaches_the_collector_of_traces(helm4: Helm, endpoint: str, port: int) -> None:
    values = merged(at("tracing", {"enabled": True, "endpoint": endpoint}), at("networkPolicy.apiServerPorts", [6443]))
    assert gets_out(helm4, "controller", port, values=values)
    assert not gets_out(helm4, "webhook", port, values=values)
    assert not gets_out(helm4, "controller", port, values=merged(values, at("tracing.enabled", False)))


def test_there_is_none_by_default(helm4: Helm) -> None:
    """Nobody knows the ports of an API server beforehand; a wrong guess would cut the controller off."""
    assert helm4.render().kind("NetworkPolicy") == []
