"""What the suite installs: the chart with values that it takes, and names that the scenarios know."""

from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from controllers.manager import ManagerOptions
from e2e import commands, gate, helm, templates, tryout
from e2e.cluster import E2eCluster
from e2e.helm import HelmRelease
from jobset_gate import names, settings
from jobset_gate.injection import validate

Json = dict[str, Any]
VALUES = gate.values("localhost/an/image:1", "small:1", {"kind": "steady"})
KNOWN = {"IMAGE": "an/image:1", "BUILD": "sha256:1", "STEADY_NODE": {}, "CODE": ""}


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
        labels = template["metadata"]["labels"]
        assert labels["app.kubernetes.io/instance"] == gate.RELEASE
        assert labels["app.kubernetes.io/component"] == component


def test_the_settings_are_ones_that_the_webhook_takes(rendered: list[Json]) -> None:
    config = yaml.safe_load(named(rendered, "ConfigMap")[gate.RELEASE]["data"]["settings.yaml"])
    loaded = settings.load({"barrier": config["barrier"]})
    assert loaded.barrier.image == "small:1"
    assert loaded.barrier.stream_url == gate.STREAM


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


def test_everything_lies_where_the_controller_looks_for_its_lease(rendered: list[Json]) -> None:
    spaces = {named(rendered, kind)[name]["metadata"]["namespace"] for kind, name in _of_controller()}
    assert spaces == {gate.NAMESPACE} == {ManagerOptions().namespace}


def _of_controller() -> Iterator[tuple[str, str]]:
    yield "Deployment", gate.CONTROLLER
    yield "ServiceAccount", gate.CONTROLLER


def test_the_first_gang_is_a_valid_one() -> None:
    text = tryout.EXAMPLE.read_text()
    jobset = yaml.safe_load(text)
    assert tryout.EXAMPLE_IMAGE in text
    assert jobset["metadata"]["name"] == tryout.GANG
    assert validate.field_errors(jobset) == []
    assert jobset["spec"][names.CONFIG_FIELD][names.TARGETS_FIELD] == ["workers"]


def test_the_stand_ins_pods_are_as_restricted_as_pod_security_asks() -> None:
    """Its namespace says so too, but only the API server would notice, and only in the cluster."""
    for it in yaml.safe_load_all(templates.filled("jobset-standin.yaml", **KNOWN)):
        if it["kind"] == "Namespace":
            assert it["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
        if it["kind"] != "Deployment":
            continue
        pod = it["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        for container in pod["containers"]:
            assert container["securityContext"]["readOnlyRootFilesystem"] is True
            assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert "memory" in container["resources"]["limits"]
            assert "readinessProbe" in container


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
