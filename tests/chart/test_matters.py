"""Each value of values.yaml does something: another one makes another rendering, of the kinds that it is for."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from tests.chart.helm import Helm, Json, at, defaults, leaves, merged

Case = tuple[str, Any, set[str]]
"""A path into the values, another value, and the kinds of the objects that then differ."""

PODS: Final = {"Deployment"}
HOOKED: Final = {"Deployment", "Job", "Pod"}
SETTINGS: Final = {"ConfigMap", "Deployment"}
"""Other settings are another ConfigMap, and through their checksum other pods."""

MONITORS: Final = ("serviceMonitor", "podMonitor")
_PEER: Final[list[Json]] = [{"podSelector": {}}]
_PROBE: Final = {"initialDelaySeconds": 3}
_STRATEGY: Final = {"type": "Recreate", "rollingUpdate": None}

PER_COMPONENT: Final[list[Case]] = [
    ("replicaCount", 3, PODS),
    ("port", 9999, PODS),
    ("terminationGracePeriodSeconds", 77, PODS),
    ("strategy", _STRATEGY, PODS),
    ("livenessProbe", _PROBE, PODS),
    ("readinessProbe", _PROBE, PODS),
    ("resources", {"limits": {"cpu": 2}}, PODS),
    ("serviceAccount.create", False, {"ServiceAccount"}),
    ("serviceAccount.name", "another", {"ServiceAccount", "Deployment", "ClusterRoleBinding", "RoleBinding"}),
    ("serviceAccount.annotations", {"a": "b"}, {"ServiceAccount"}),
    ("extraArgs", ["--log-level=debug"], PODS),
    ("extraEnv", [{"name": "A", "value": "b"}], PODS),
    ("podAnnotations", {"a": "b"}, PODS),
    ("podLabels", {"a": "b"}, PODS),
    ("nodeSelector", {"a": "b"}, PODS),
    ("tolerations", [{"operator": "Exists"}], PODS),
    ("affinity", {"podAffinity": {}}, PODS),
    ("topologySpreadConstraints", [{"topologyKey": "rack"}], PODS),
    ("priorityClassName", "high", PODS),
    ("hostNetwork", True, PODS),
    ("dnsConfig", {"searches": ["a"]}, PODS),
    ("extraVolumes", [{"name": "a", "emptyDir": {}}], PODS),
    ("extraVolumeMounts", [{"name": "a", "mountPath": "/a"}], PODS),
]
TOP: Final[list[Case]] = [
    ("global.imageRegistry", "mirror.example", HOOKED),
    ("global.imagePullSecrets", [{"name": "a"}], HOOKED),
    ("nameOverride", "barrier", {"Deployment", "Service", "ServiceAccount"}),
    ("fullnameOverride", "gate", {"Deployment", "Service", "ServiceAccount"}),
    ("commonLabels", {"a": "b"}, {"Deployment", "Service", "MutatingWebhookConfiguration", "Lease"}),
    ("image.registry", "registry.example:5000", HOOKED),
    ("image.repository", "team/gate", HOOKED),
    ("image.tag", "9.9.9", HOOKED),
    ("image.digest", "sha256:" + "b" * 64, HOOKED),
    ("image.pullPolicy", "Always", HOOKED),
    ("imagePullSecrets", [{"name": "a"}], HOOKED),
    ("listenAddress", "::", SETTINGS),
    ("logging.level", "debug", PODS),
    ("logging.format", "console", PODS),
    ("webhook.failurePolicy", "Ignore", {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}),
    ("webhook.timeoutSeconds", 9, {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration"}),
    ("webhook.certificates.mode", "certManager", {"Certificate", "Issuer", "Secret", "Deployment"}),
    ("webhook.certificates.caDuration", "48h", PODS),
    ("webhook.certificates.leafDuration", "12h", PODS),
    ("webhook.shutdownDelaySeconds", 9, PODS),
    ("controller.leaderElection.leaseDurationSeconds", 20, SETTINGS),
    ("controller.leaderElection.renewDeadlineSeconds", 12, SETTINGS),
    ("controller.leaderElection.retryPeriodSeconds", 1, SETTINGS),
    ("controller.workers", 9, SETTINGS),
    ("controller.patchConcurrency", 0, {*SETTINGS, "ClusterRole"}),
    ("controller.progressSeconds", 9, SETTINGS),
    ("stream.enabled", False, {*SETTINGS, "Service"}),
    ("stream.port", 9082, {*SETTINGS, "Service"}),
    ("barrier.image", "alpine:3.22", SETTINGS),
    ("barrier.resources", {"limits": {"cpu": "5m"}}, SETTINGS),
    ("barrier.runAsUser", 1000, SETTINGS),
    ("barrier.runAsGroup", None, SETTINGS),
    ("barrier.graceSeconds", 9, SETTINGS),
    ("barrier.maxWaitSeconds", 9, SETTINGS),
    ("barrier.pollSeconds", 1, SETTINGS),
    ("barrier.streamUrl", "http://elsewhere:80", SETTINGS),
    (
        "gangs.sources",
        ["jobset"],
        {
            *SETTINGS,
            "ClusterRole",
            "ValidatingAdmissionPolicy",
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
        },
    ),
    ("groups.enabled", False, {*SETTINGS, "ClusterRole", "MutatingWebhookConfiguration", "Job", "ServiceAccount"}),
    ("groups.ways", ["alibaba"], {*SETTINGS, "ClusterRole", "MutatingWebhookConfiguration"}),
    ("groups.schedulerNames", ["another"], {*SETTINGS, "MutatingWebhookConfiguration"}),
    ("groups.capacityCheck", "Off", {*SETTINGS, "ClusterRole"}),
    ("groups.starvationSeconds", 9, SETTINGS),
    ("groups.waitSeconds", 9, SETTINGS),
    ("groups.acrossNamespaces", True, SETTINGS),
    ("groups.native", "On", {*SETTINGS, "ClusterRole"}),
    ("groups.gateConcurrency", 9, SETTINGS),
    ("crds.extendJobSet", False, {*SETTINGS, "ClusterRole", "Job", "Pod"}),
    ("crds.podGroups", False, {*SETTINGS, "ClusterRole"}),
    ("crds.keep", True, {"Job", "ServiceAccount", "ClusterRole", "ClusterRoleBinding"}),
    ("rbac.create", False, {"ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"}),
    ("admissionPolicies.enabled", False, {"ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"}),
    ("podSecurityContext", {"runAsUser": 1}, HOOKED),
    ("securityContext", {"runAsUser": 1}, HOOKED),
    ("podDisruptionBudget.enabled", False, {"PodDisruptionBudget"}),
    ("podDisruptionBudget.maxUnavailable", "50%", {"PodDisruptionBudget"}),
    ("podDisruptionBudget.minAvailable", 1, {"PodDisruptionBudget"}),
    ("metrics.prometheusRule.enabled", False, {"PrometheusRule"}),
    ("metrics.prometheusRule.labels", {"a": "b"}, {"PrometheusRule"}),
    ("metrics.prometheusRule.annotations", {"a": "b"}, {"PrometheusRule"}),
    ("metrics.dashboards.enabled", False, {"ConfigMap"}),
    ("metrics.dashboards.labels", {"a": "b"}, {"ConfigMap"}),
    ("metrics.dashboards.annotations", {"a": "b"}, {"ConfigMap"}),
    ("networkPolicy.enabled", False, {"NetworkPolicy"}),
    ("networkPolicy.metricsFrom", _PEER, {"NetworkPolicy"}),
    ("networkPolicy.streamFrom", _PEER, {"NetworkPolicy"}),
    ("networkPolicy.apiServerPorts", [16443], {"NetworkPolicy"}),
    ("networkPolicy.dnsPorts", [5353], {"NetworkPolicy"}),
    ("networkPolicy.extraIngress", [{}], {"NetworkPolicy"}),
    ("statusPage.enabled", True, {*SETTINGS, "ClusterRole"}),
    ("networkPolicy.extraEgress", [{}], {"NetworkPolicy"}),
    ("tracing.enabled", True, {*SETTINGS, "NetworkPolicy"}),
    ("tests.enabled", False, {"Pod", "Role", "RoleBinding", "ServiceAccount"}),
    ("tests.namespace", "team", {"Pod", "Role", "RoleBinding"}),
    ("extraObjects", [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "x"}}], {"Namespace"}),
]
ON_MONITORS: Final[Json] = {
    "interval": "9s",
    "scrapeTimeout": "9s",
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
    "relabelings": [{"action": "labeldrop"}],
    "metricRelabelings": [{"action": "labeldrop"}],
}
ROUTE: Final[Json] = {
    "enabled": True,
    "parentRefs": [{"name": "gateway"}],
    "hostnames": ["gangs.example.com"],
    "labels": {"a": "b"},
    "annotations": {"a": "b"},
}
APART: Final[list[tuple[Case, Json]]] = [
    # Values that mean something only together with others.
    (
        ("controller.leaderElection.enabled", False, {"Deployment", "Lease", "Role", "RoleBinding"}),
        at("controller.replicaCount", 1),
    ),
    (("webhook.certificates.secretName", "x", PODS), at("webhook.certificates", {"mode": "secret", "secretName": "y"})),
    (
        ("gangs.podFailurePolicy", "Ignore", {*SETTINGS, "MutatingWebhookConfiguration"}),
        at("gangs.sources", ["jobset", "startgroup"]),
    ),
    (("tracing.endpoint", "http://otel:9000", {*SETTINGS, "NetworkPolicy"}), at("tracing.enabled", True)),
    (("statusPage.port", 9083, SETTINGS), at("statusPage.enabled", True)),
    (("statusPage.prices", {"nvidia.com/gpu": 2.5}, SETTINGS), at("statusPage.enabled", True)),
    (("statusPage.tlsSecretName", "page", {*SETTINGS, "Service"}), at("statusPage.enabled", True)),
    (("statusPage.httpRoute", ROUTE, {"HTTPRoute"}), at("statusPage", {"enabled": True, "tlsSecretName": "page"})),
    (
        ("networkPolicy.pageFrom", _PEER, {"NetworkPolicy"}),
        at("statusPage", {"enabled": True, "tlsSecretName": "page"}),
    ),
    (
        ("webhook.certificates.issuerRef", {"name": "x"}, {"Certificate", "Issuer"}),
        at("webhook.certificates.mode", "certManager"),
    ),
]
EVERYTHING_ON: Final = merged(
    at("networkPolicy.enabled", True),
    at("metrics.prometheusRule.enabled", True),
    at("metrics.dashboards.enabled", True),
    at("crds.keep", False),
)


def _cases() -> Iterator[tuple[Case, Json]]:
    yield from ((case, {}) for case in TOP)
    yield from APART
    for monitor in MONITORS:
        kind, on = monitor[0].upper() + monitor[1:], at(f"metrics.{monitor}.enabled", True)
        yield (f"metrics.{monitor}.enabled", False, {kind}), on
        yield from (((f"metrics.{monitor}.{path}", value, {kind}), on) for path, value in ON_MONITORS.items())


CASES: Final = {case[0]: (case, base) for case, base in _cases()}
OF_COMPONENTS: Final = {f"{it}.{path}" for it in ("webhook", "controller") for path, _, _ in PER_COMPONENT}


FOLLOWING: Final[dict[str, set[str]]] = {
    # What else may differ: firewall and budgets go with the pods, and pods of hooks lie where the webhook's do.
    "port": {"NetworkPolicy", "Service"},
    "replicaCount": {"PodDisruptionBudget"},
    **{path: {"Job", "Pod"} for path in ("nodeSelector", "tolerations", "priorityClassName")},
}


def differing(helm: Helm, base: Json, values: Json) -> list[tuple[str, str]]:
    """Kind and name of the objects that other values change, add or take away."""
    before, after = helm.render(base).all, helm.render(merged(base, values)).all
    return [
        (one["kind"], one["metadata"]["name"]) for one in [*before, *after] if one not in before or one not in after
    ]


@pytest.mark.parametrize("path", CASES)
def test_another_value_makes_another_installation(helm4: Helm, path: str) -> None:
    (_, value, kinds), base = CASES[path]
    found = {kind for kind, _ in differing(helm4, merged(EVERYTHING_ON, base), at(path, value))}
    assert kinds <= found, f"{path}: only {found}"
    if kinds <= SETTINGS | HOOKED:
        assert found <= kinds | FOLLOWING.get(path.rpartition(".")[2], set())


@pytest.mark.parametrize(("path", "value", "kinds"), PER_COMPONENT, ids=[path for path, _, _ in PER_COMPONENT])
def test_another_value_of_a_component_changes_its_objects(helm4: Helm, path: str, value: Any, kinds: set[str]) -> None:
    found = differing(helm4, EVERYTHING_ON, {it: at(path, value) for it in ("webhook", "controller")})
    for component in ("webhook", "controller"):
        assert kinds <= {kind for kind, name in found if component in name or name == value}, (path, component)
    if kinds <= SETTINGS | HOOKED:
        assert {kind for kind, _ in found} <= kinds | FOLLOWING.get(path.rpartition(".")[2], set())


def test_no_value_is_forgotten_here() -> None:
    assert [path for path in leaves(defaults()) if not _covered(path)] == []


def _covered(path: str) -> bool:
    """It, a part of it, or the whole that it is a part of."""
    known = CASES.keys() | OF_COMPONENTS
    return any(path == case or path.startswith(f"{case}.") or case.startswith(f"{path}.") for case in known)
