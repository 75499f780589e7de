"""What the suite installs: the chart with values that it takes, and names that the scenarios know."""

from typing import Any

import pytest
import yaml

from controllers.manager import ManagerOptions
from e2e import commands, gate, helm
from e2e.cluster import E2eCluster
from e2e.helm import HelmRelease

Json = dict[str, Any]
VALUES = gate.values("localhost/an/image:1", "small:1", {"kind": "steady"})


@pytest.fixture(scope="module")
def rendered() -> list[Json]:
    """The chart as the suite installs it."""
    text = helm.rendered(VALUES, gate.RELEASE, gate.NAMESPACE)
    return [it for it in yaml.safe_load_all(text) if it]


def named(objects: list[Json], kind: str) -> dict[str, Json]:
    return {it["metadata"]["name"]: it for it in objects if it["kind"] == kind}


def test_scenarios_find_the_deployments_and_their_containers(rendered: list[Json]) -> None:
    deployments = named(rendered, "Deployment")
    assert set(deployments) == {gate.WEBHOOK, gate.CONTROLLER}
    for name, component in ((gate.WEBHOOK, "webhook"), (gate.CONTROLLER, "controller")):
        template = deployments[name]["spec"]["template"]
        (container,) = template["spec"]["containers"]
        assert deployments[name]["spec"]["replicas"] == 2
        assert container["name"] == container["args"][0] == component
        assert container["image"] == "localhost/an/image:1"
        assert template["spec"]["nodeSelector"] == {"kind": "steady"}
        assert template["metadata"]["annotations"]["build"]
        assert deployments[name]["metadata"]["namespace"] == gate.NAMESPACE == ManagerOptions().namespace
        labels = template["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == gate.RELEASE
        assert labels["app.kubernetes.io/component"] == component


def test_the_stream_that_firewalls_cut_is_the_charts(rendered: list[Json]) -> None:
    (service,) = [it for name, it in named(rendered, "Service").items() if name.endswith("-stream")]
    assert [one["port"] for one in service["spec"]["ports"]] == [gate.STREAM_PORT]


def test_the_secret_of_the_ca_is_the_one_that_scenarios_delete(rendered: list[Json]) -> None:
    (args,) = [
        it["spec"]["template"]["spec"]["containers"][0]["args"]
        for name, it in named(rendered, "Deployment").items()
        if name == gate.WEBHOOK
    ]
    assert f"--own-ca={gate.CA_SECRET}" in args


class EmptyCluster(E2eCluster):
    """A cluster in which there is nothing that the suite has made."""

    def kubectl(self, *args: str, stdin: str | None = None, seconds: float = 0) -> str:
        assert "apply" not in args
        return "namespace/default\n"


def test_a_release_that_the_suite_has_not_made_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(HelmRelease, "exists", lambda _: True)
    with pytest.raises(
        commands.CommandFailed, match="is in jobset-gate-system already, and not put there by this suite"
    ):
        gate.install(EmptyCluster("a.kubeconfig"), VALUES)
