"""Where the pods run: spread by default, and wherever an operator says, each component by itself."""

from typing import Any

import pytest

from tests.chart.helm import Helm, at

COMPONENTS = ("webhook", "controller")
AFFINITY = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "rack"}]}}


@pytest.mark.parametrize("component", COMPONENTS)
def test_replicas_keep_apart_by_node_and_zone_where_they_can(helm4: Helm, component: str) -> None:
    found = helm4.render()
    spread = found.pod(component)["spec"]["topologySpreadConstraints"]
    assert [one["topologyKey"] for one in spread] == ["kubernetes.io/hostname", "topology.kubernetes.io/zone"]
    for one in spread:
        assert one["whenUnsatisfiable"] == "ScheduleAnyway"  # a cluster of one node gets its replicas, too
        assert one["labelSelector"] == found.deployment(component)["spec"]["selector"]
        assert one["matchLabelKeys"] == ["pod-template-hash"]  # while rolling, the old ones do not count


@pytest.mark.parametrize("component", COMPONENTS)
def test_one_replica_has_nobody_to_keep_apart_from(helm4: Helm, component: str) -> None:
    values: dict[str, Any] = {"replicaCount": 1}
    assert "topologySpreadConstraints" not in helm4.render({component: values}).pod(component)["spec"]


@pytest.mark.parametrize("component", COMPONENTS)
def test_other_constraints_take_the_place_of_ours(helm4: Helm, component: str) -> None:
    mine = [{"maxSkew": 2, "topologyKey": "rack", "whenUnsatisfiable": "DoNotSchedule"}]
    found = helm4.render(at(f"{component}.topologySpreadConstraints", mine))
    assert found.pod(component)["spec"]["topologySpreadConstraints"] == mine


@pytest.mark.parametrize("component", COMPONENTS)
@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("nodeSelector", {"pool": "system"}),
        ("tolerations", [{"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}]),
        ("affinity", AFFINITY),
        ("priorityClassName", "system-cluster-critical"),
    ],
)
def test_each_component_goes_where_it_shall(helm4: Helm, component: str, key: str, value: Any) -> None:
    found = helm4.render(at(f"{component}.{key}", value))
    (other,) = set(COMPONENTS) - {component}
    assert found.pod(component)["spec"][key] == value
    assert key not in found.pod(other)["spec"]


@pytest.mark.parametrize("key", ["nodeSelector", "tolerations", "priorityClassName"])
def test_pods_of_hooks_go_where_the_webhook_goes(helm4: Helm, key: str) -> None:
    value = {"nodeSelector": {"a": "b"}, "tolerations": [{"operator": "Exists"}], "priorityClassName": "high"}[key]
    found = helm4.render({"webhook": {key: value}, "crds": {"keep": False}})
    assert found.one("Pod")["spec"][key] == value
    assert [job["spec"]["template"]["spec"][key] for job in found.kind("Job")] == [value, value]


@pytest.mark.parametrize("component", COMPONENTS)
def test_what_is_added_to_a_component_arrives(helm4: Helm, component: str) -> None:
    added = {
        "extraArgs": ["--log-level=debug", "--x=:"],
        "extraEnv": [{"name": "A", "value": "1"}],
        "podAnnotations": {"example.com/a": "b"},
        "podLabels": {"team": "ml"},
        "resources": {"limits": {"memory": "1Gi"}},
    }
    found = helm4.render({component: added})
    pod, container = found.pod(component), found.container(component)
    assert container["args"][-2:] == added["extraArgs"]  # last, so they win
    assert {"name": "A", "value": "1"} in container["env"]
    assert pod["metadata"]["annotations"]["example.com/a"] == "b"
    assert pod["metadata"]["labels"]["team"] == "ml"
    assert container["resources"]["limits"]["memory"] == "1Gi"


@pytest.mark.parametrize("component", COMPONENTS)
def test_nothing_has_a_cpu_limit(helm4: Helm, component: str) -> None:
    """A throttled webhook is a slow API server; memory has a limit, and both have requests."""
    resources = helm4.render().container(component)["resources"]
    assert set(resources["limits"]) == {"memory"}
    assert set(resources["requests"]) == {"cpu", "memory"}
