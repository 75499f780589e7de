"""The controller's Deployment, its Lease and the Service of the gate stream."""

import pytest

from tests.chart.helm import Helm, RenderedObjects, at, merged


def args(found: RenderedObjects) -> list[str]:
    return list(found.container("controller")["args"])


def test_two_replicas_of_which_one_leads(helm4: Helm) -> None:
    found = helm4.render()
    assert found.deployment("controller")["spec"]["replicas"] == 2
    assert "--leader-elect" in args(found)
    assert "--namespace=jobset-gate-system" in args(found)


def test_the_lease_is_part_of_the_release_but_not_what_is_in_it(helm4: Helm) -> None:
    """So uninstalling takes it away, and no upgrade touches who leads."""
    lease = helm4.render().one("Lease")
    assert set(lease) == {"apiVersion", "kind", "metadata"}
    assert lease["metadata"]["namespace"] == "jobset-gate-system"


def test_a_single_replica_may_do_without_an_election(helm4: Helm) -> None:
    alone = merged(at("controller.replicaCount", 1), at("controller.leaderElection.enabled", False))
    found = helm4.render(alone)
    assert "--no-leader-elect" in args(found)
    assert "--leader-elect" not in args(found)
    assert found.kind("Lease") == []


def test_health_and_metrics_are_where_they_are_asked_for(helm4: Helm) -> None:
    found = helm4.render(at("controller.port", 9090))
    container = found.container("controller")
    assert {"--host=0.0.0.0", "--port=9090"} <= set(container["args"])
    assert {"name": "metrics", "containerPort": 9090, "protocol": "TCP"} in container["ports"]
    for probe, path in (("livenessProbe", "/healthz"), ("readinessProbe", "/readyz")):
        assert container[probe]["httpGet"] == {"path": path, "port": "metrics", "scheme": "HTTP"}


def test_on_a_cluster_of_ipv6_it_listens_there(helm4: Helm) -> None:
    found = helm4.render(at("listenAddress", "::"))
    assert "--host=::" in args(found)
    assert "--host=::" in found.container("webhook")["args"]
    assert 'streamHost: "::"' in found.one("ConfigMap")["data"]["settings.yaml"]


def test_the_stream_goes_to_the_controllers(helm4: Helm) -> None:
    found = helm4.render()
    service = found.one("Service", "jobset-gate-stream")["spec"]
    assert service["selector"] == found.deployment("controller")["spec"]["selector"]["matchLabels"]
    assert {"name": "stream", "containerPort": 8082, "protocol": "TCP"} in found.container("controller")["ports"]


def test_without_the_stream_there_is_no_port_for_it(helm4: Helm) -> None:
    found = helm4.render(at("stream.enabled", False))
    assert [port["name"] for port in found.container("controller")["ports"]] == ["metrics"]


@pytest.mark.parametrize(("wanted", "flag"), [(True, "--extend-crd"), (False, "--no-extend-crd")])
def test_it_keeps_the_field_in_the_crd_if_it_shall(helm4: Helm, wanted: bool, flag: str) -> None:
    found = helm4.render(at("crds.extendJobSet", wanted))
    assert flag in args(found)
    assert f"extendCrd: {str(wanted).lower()}" in found.one("ConfigMap")["data"]["settings.yaml"]


def test_a_roll_leaves_a_standby(helm4: Helm) -> None:
    spec = helm4.render().deployment("controller")["spec"]
    assert spec["strategy"]["rollingUpdate"] == {"maxUnavailable": 0, "maxSurge": 1}
    assert spec["template"]["spec"]["terminationGracePeriodSeconds"] == 15
