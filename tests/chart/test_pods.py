"""The pods of the chart: image, ports, probes, security, placement and disruption budgets of each component."""

from collections.abc import Iterator
from typing import Any, Final

import pytest

from jobset_gate import names
from tests.chart.helm import Helm, Json, RenderedObjects, at, merged
from tests.chart.samples import SAMPLES

COMPONENTS: Final = ("webhook", "controller")
REMOVED: Final = at("crds.keep", False)
"""Renders the pods of all hooks, too."""
DIGEST: Final = "sha256:" + "0123456789abcdef" * 4


def pods(found: RenderedObjects) -> Iterator[tuple[str, Json]]:
    for one in found.kind("Deployment") + found.kind("Job"):
        yield one["metadata"]["name"], one["spec"]["template"]["spec"]
    for one in found.kind("Pod"):
        yield one["metadata"]["name"], one["spec"]


def args(found: RenderedObjects, component: str) -> list[str]:
    return list(found.container(component)["args"])


# --- Ports, probes, arguments ----------------------------------------------------------------------------------------


def test_two_replicas_never_fewer_during_a_rollout_without_a_limit_of_cpu(helm4: Helm) -> None:
    """A throttled webhook is a slow API server; memory has a limit, and both have requests."""
    for component in COMPONENTS:
        spec = helm4.render().deployment(component)["spec"]
        assert spec["replicas"] == 2
        assert spec["strategy"] == {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}}
        resources = helm4.render().container(component)["resources"]
        assert (set(resources["limits"]), set(resources["requests"])) == ({"memory"}, {"cpu", "memory"})


def test_the_webhook_listens_where_private_clusters_admit_the_api_server(helm4: Helm) -> None:
    found = helm4.render()
    assert found.container("webhook")["ports"] == [{"name": "admission", "containerPort": 10250, "protocol": "TCP"}]
    assert {"--port=10250", "--host=0.0.0.0", "--config=/etc/jobset-gate/settings.yaml"} <= set(args(found, "webhook"))
    service = found.one("Service", "jobset-gate-webhook")["spec"]
    assert service["ports"] == [{"name": "admission", "port": 443, "targetPort": "admission", "protocol": "TCP"}]
    assert service["selector"] == found.deployment("webhook")["spec"]["selector"]["matchLabels"]


def test_another_port_or_address_is_the_same_everywhere(helm4: Helm) -> None:
    ports = merged(at("webhook.port", 9443), at("controller.port", 9090), at("networkPolicy.enabled", True))
    found = helm4.render(ports)
    assert found.container("webhook")["ports"][0]["containerPort"] == 9443
    assert "--port=9443" in args(found, "webhook")
    (rule,) = found.one("NetworkPolicy", "jobset-gate-webhook")["spec"]["ingress"]
    assert rule["ports"] == [{"port": 9443, "protocol": "TCP"}]
    assert {"--host=0.0.0.0", "--port=9090"} <= set(args(found, "controller"))
    assert {"name": "metrics", "containerPort": 9090, "protocol": "TCP"} in found.container("controller")["ports"]
    found = helm4.render(at("listenAddress", "::"))
    assert all("--host=::" in args(found, component) for component in COMPONENTS)
    assert 'streamHost: "::"' in found.one("ConfigMap")["data"]["settings.yaml"]


def test_the_webhook_goes_on_answering_until_it_has_left_the_endpoints(helm4: Helm) -> None:
    """Not ready during the delay, then five seconds for requests in progress; only then may the kubelet kill it."""
    found = helm4.render({"webhook": {"shutdownDelaySeconds": 12, "terminationGracePeriodSeconds": 40}})
    assert "--shutdown-delay=12" in args(found, "webhook")
    assert found.pod("webhook")["spec"]["terminationGracePeriodSeconds"] == 40
    assert found.pod("controller")["spec"]["terminationGracePeriodSeconds"] == 15


@pytest.mark.parametrize(
    ("probe", "path", "periods"),
    [
        ("livenessProbe", "/healthz", {"periodSeconds": 10, "timeoutSeconds": 5, "failureThreshold": 6}),
        ("readinessProbe", "/readyz", {"periodSeconds": 2, "timeoutSeconds": 5, "failureThreshold": 3}),
    ],
)
def test_probes_go_to_the_port_of_the_program(helm4: Helm, probe: str, path: str, periods: dict[str, int]) -> None:
    expected = {"httpGet": {"path": path, "port": "admission", "scheme": "HTTPS"}} | periods
    assert helm4.render().container("webhook")[probe] == expected
    changed = helm4.render(at(f"webhook.{probe}.timeoutSeconds", 9)).container("webhook")[probe]
    assert changed == expected | {"timeoutSeconds": 9}
    plain = {"path": path, "port": "metrics", "scheme": "HTTP"}
    assert helm4.render().container("controller")[probe]["httpGet"] == plain


def test_one_controller_leads_by_a_lease_that_is_part_of_the_release_without_its_content(helm4: Helm) -> None:
    """Uninstalling deletes the Lease, and no upgrade changes its holder."""
    found = helm4.render()
    assert {"--leader-elect", "--namespace=jobset-gate-system"} <= set(args(found, "controller"))
    lease = found.one("Lease", names.LEASE)
    assert set(lease) == {"apiVersion", "kind", "metadata"}
    assert lease["metadata"]["namespace"] == "jobset-gate-system"
    alone = merged(at("controller.replicaCount", 1), at("controller.leaderElection.enabled", False))
    single = helm4.render(alone)
    assert "--no-leader-elect" in args(single, "controller")
    assert single.kind("Lease") == []


def test_temporary_files_are_in_memory_and_nothing_else_is_writable(helm4: Helm) -> None:
    found = helm4.render()
    tmp = "/tmp"  # noqa: S108 - in a pod
    for component in COMPONENTS:
        mounts = found.container(component)["volumeMounts"]
        assert [one["mountPath"] for one in mounts if not one.get("readOnly")] == [tmp]
        assert {"name": "settings", "mountPath": "/etc/jobset-gate", "readOnly": True} in mounts
        assert {"name": "settings", "configMap": {"name": "jobset-gate"}} in found.pod(component)["spec"]["volumes"]
    (volume,) = [one for one in found.pod("webhook")["spec"]["volumes"] if one["name"] == "tmp"]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": "16Mi"}
    assert {"name": "TMPDIR", "value": tmp} in found.container("webhook")["env"]


# --- Image -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "name"),
    [
        ({}, "jobset-gate:0.1.0"),
        ({"image": {"registry": "own:5000", "repository": "ml/gate", "tag": "dev"}}, "own:5000/ml/gate:dev"),
        ({"image": {"digest": DIGEST}}, f"jobset-gate@{DIGEST}"),
        ({"image": {"registry": "own", "tag": "0.1.0", "digest": DIGEST}}, f"own/jobset-gate:0.1.0@{DIGEST}"),
        ({"global": {"imageRegistry": "mirror"}}, "mirror/jobset-gate:0.1.0"),
        ({"global": {"imageRegistry": "mirror"}, "image": {"registry": "own"}}, "own/jobset-gate:0.1.0"),
    ],
)
def test_every_container_runs_the_one_image(helm4: Helm, values: Json, name: str) -> None:
    found = helm4.render(merged(REMOVED, values))
    assert {each["image"] for _, pod in pods(found) for each in pod["containers"]} == {name}


@pytest.mark.parametrize(
    ("shared", "own", "expected"),
    [([], [], None), ([], ["mine"], "mine"), (["shared"], [], "shared"), (["shared"], ["mine"], "mine")],
)
def test_every_pod_has_the_pull_secrets(helm4: Helm, shared: list[str], own: list[str], expected: str | None) -> None:
    def secrets(names: list[str]) -> list[Json]:
        return [{"name": name} for name in names]

    values = merged(at("global.imagePullSecrets", secrets(shared)), at("imagePullSecrets", secrets(own)))
    found = list(pods(helm4.render(merged(REMOVED, values))))
    assert len(found) == 5
    assert all(pod.get("imagePullSecrets") == (secrets([expected]) if expected else None) for _, pod in found)


# --- Security --------------------------------------------------------------------------------------------------------


def test_every_pod_has_a_read_only_root_and_mounts_a_token_where_it_needs_one(helm4: Helm) -> None:
    """A pod that another user runs under one of these accounts gets no token. tests/repo/test_security_pods.py has a
    real API server judge the rest.
    """
    for sample, values in SAMPLES.items():
        rendered = helm4.render(merged(REMOVED, values))
        found = list(pods(rendered))
        assert len(found) >= 2, sample
        assert all(one["automountServiceAccountToken"] is False for one in rendered.kind("ServiceAccount")), sample
        for name, pod in found:
            where, contexts = f"{sample}: {name}", [one["securityContext"] for one in pod["containers"]]
            assert all(one["readOnlyRootFilesystem"] for one in contexts), where
            assert (pod["automountServiceAccountToken"], pod["enableServiceLinks"]) == (True, False), where


def test_a_platform_may_choose_the_user(helm4: Helm) -> None:
    """OpenShift does, for pods without one."""
    unset = {"runAsUser": None, "runAsGroup": None, "fsGroup": None}
    for _, pod in pods(helm4.render({"podSecurityContext": unset})):
        assert pod["securityContext"] == {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def test_each_component_has_an_account_of_its_own(helm4: Helm) -> None:
    found = helm4.render(REMOVED)
    accounts = [pod["serviceAccountName"] for _, pod in pods(found)]
    assert sorted(accounts) == sorted({one["metadata"]["name"] for one in found.kind("ServiceAccount")})


@pytest.mark.parametrize(
    ("account", "name"),
    [
        ({"create": False}, "default"),
        ({"create": False, "name": "mine"}, "mine"),
        ({"name": "mine"}, "mine"),
        ({}, "jobset-gate-webhook"),
    ],
)
def test_another_account_gets_the_rights_as_well(helm4: Helm, account: Json, name: str) -> None:
    found = helm4.render({"webhook": {"serviceAccount": account}})
    assert found.pod("webhook")["spec"]["serviceAccountName"] == name
    for kind in ("ClusterRoleBinding", "RoleBinding"):
        (subject,) = found.one(kind, "jobset-gate-webhook")["subjects"]
        assert subject == {"kind": "ServiceAccount", "name": name, "namespace": "jobset-gate-system"}
    created = {one["metadata"]["name"] for one in found.kind("ServiceAccount")}
    assert (name in created) is account.get("create", True)


# --- Placement and disruptions ---------------------------------------------------------------------------------------


def test_replicas_are_spread_over_nodes_and_zones_where_that_is_possible(helm4: Helm) -> None:
    found, single = helm4.render(), helm4.render({it: {"replicaCount": 1} for it in COMPONENTS})
    mine = [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]
    replaced = helm4.render({it: {"topologySpreadConstraints": mine} for it in COMPONENTS})
    for component in COMPONENTS:
        spread = found.pod(component)["spec"]["topologySpreadConstraints"]
        assert [one["topologyKey"] for one in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
        for one in spread:
            assert one["whenUnsatisfiable"] == "ScheduleAnyway"  # a cluster of one node gets its replicas, too
            assert one["labelSelector"] == found.deployment(component)["spec"]["selector"]
            assert one["matchLabelKeys"] == ["pod-template-hash"]  # old pods of a rollout do not count
        assert "topologySpreadConstraints" not in single.pod(component)["spec"]
        assert replaced.pod(component)["spec"]["topologySpreadConstraints"] == mine


def test_a_budget_keeps_one_of_two_and_lets_pods_that_are_not_ready_be_evicted(helm4: Helm) -> None:
    found = helm4.render()
    for component in COMPONENTS:
        assert found.one("PodDisruptionBudget", f"jobset-gate-{component}")["spec"] == {
            "maxUnavailable": 1,
            "selector": found.deployment(component)["spec"]["selector"],
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
        }


@pytest.mark.parametrize(
    ("values", "budgets"),
    [
        (at("webhook.replicaCount", 1), {"controller": ("maxUnavailable", 1)}),  # else its node could not be drained
        (at("podDisruptionBudget.minAvailable", 1), dict.fromkeys(COMPONENTS, ("minAvailable", 1))),
        (at("podDisruptionBudget.minAvailable", "50%"), dict.fromkeys(COMPONENTS, ("minAvailable", "50%"))),
        (merged(at("podDisruptionBudget.enabled", False), at("webhook.replicaCount", 9)), {}),
    ],
)
def test_budgets_follow_the_values(helm4: Helm, values: Json, budgets: dict[str, tuple[str, Any]]) -> None:
    found = {}
    for one in helm4.render(values).kind("PodDisruptionBudget"):
        (limit,) = one["spec"].keys() & {"maxUnavailable", "minAvailable"}
        found[one["metadata"]["name"].rpartition("-")[2]] = (limit, one["spec"][limit])
    assert found == budgets


# --- Network and volumes of the user's -------------------------------------------------------------------------------


@pytest.mark.parametrize("component", COMPONENTS)
def test_a_pod_on_the_nodes_network_still_resolves_names_of_the_cluster(helm4: Helm, component: str) -> None:
    plain = helm4.render().pod(component)["spec"]
    assert plain.keys().isdisjoint({"hostNetwork", "dnsPolicy", "dnsConfig"})
    servers = {"nameservers": ["192.0.2.1"]}
    spec = helm4.render({component: {"hostNetwork": True, "dnsConfig": servers}}).pod(component)["spec"]
    assert (spec["hostNetwork"], spec["dnsPolicy"], spec["dnsConfig"]) == (True, "ClusterFirstWithHostNet", servers)


def test_a_route_of_the_gateway_api_leads_to_the_pages_service(helm4: Helm) -> None:
    tls, on = {"enabled": True, "tlsSecretName": "page"}, {"enabled": True}
    refs = [{"name": "gateway", "namespace": "gateways"}]
    found = helm4.render({"statusPage": tls | {"httpRoute": on | {"parentRefs": refs}}})
    (port,) = found.one("Service", "jobset-gate-page")["spec"]["ports"]
    assert found.one("HTTPRoute", "jobset-gate-page")["spec"] == {
        "parentRefs": refs,
        "rules": [{"backendRefs": [{"name": "jobset-gate-page", "port": port["port"]}]}],
    }
    without = {"statusPage": on | {"httpRoute": on | {"parentRefs": refs}}}
    assert "statusPage.httpRoute: needs" in helm4.refusal(without)
    assert "statusPage.httpRoute.parentRefs" in helm4.refusal({"statusPage": tls | {"httpRoute": on}})


def test_two_components_on_the_nodes_network_need_ports_of_their_own(helm4: Helm) -> None:
    both = merged(at("webhook.hostNetwork", True), at("controller.hostNetwork", True), at("webhook.port", 8080))
    assert "webhook.port: on the node's network" in helm4.refusal(both)
