"""PodDisruptionBudgets: never the last one, and never in the way of a drained node."""

from typing import Any

import pytest

from tests.chart.helm import Helm, at, merged


def test_each_component_keeps_one_of_two(helm4: Helm) -> None:
    found = helm4.render()
    for component in ("webhook", "controller"):
        spec = found.one("PodDisruptionBudget", f"jobset-gate-{component}")["spec"]
        assert spec["maxUnavailable"] == 1
        assert "minAvailable" not in spec
        assert spec["selector"] == found.deployment(component)["spec"]["selector"]


def test_a_single_replica_has_none(helm4: Helm) -> None:
    """It would make its node impossible to drain."""
    found = helm4.render(at("webhook.replicaCount", 1))
    assert [one["metadata"]["name"] for one in found.kind("PodDisruptionBudget")] == ["jobset-gate-controller"]


def test_a_pod_that_is_not_ready_may_always_be_evicted(helm4: Helm) -> None:
    for one in helm4.render().kind("PodDisruptionBudget"):
        assert one["spec"]["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


@pytest.mark.parametrize("least", [1, "50%"])
def test_the_least_that_must_stay_may_be_said_instead(helm4: Helm, least: Any) -> None:
    for one in helm4.render(at("podDisruptionBudget.minAvailable", least)).kind("PodDisruptionBudget"):
        assert one["spec"]["minAvailable"] == least
        assert "maxUnavailable" not in one["spec"]


def test_there_is_none_if_nobody_wants_them(helm4: Helm) -> None:
    many = merged(at("podDisruptionBudget.enabled", False), at("webhook.replicaCount", 9))
    assert helm4.render(many).kind("PodDisruptionBudget") == []
