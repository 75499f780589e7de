"""What the suite installs: names that the code knows, rights of the least kind, pods as Pod Security restricts them."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from controllers.manager import Options
from e2e import gate, templates
from jobset_gate import names, settings
from webhook import registration

Json = dict[str, Any]
KNOWN = {
    "IMAGE": "an/image:1",
    "BUILD": "sha256:1",
    "SETTINGS": json.dumps(gate.settings("small:1")),
    "STEADY_NODE": {},
    "CONTROLLER_ARGS": ["controller"],
}


def objects(file: str) -> list[Json]:
    return list(yaml.safe_load_all(templates.filled(file, **KNOWN)))


def rules(file: str, kind: str) -> Iterator[Json]:
    return (rule for it in objects(file) if it["kind"] == kind for rule in it["rules"])


def test_a_place_that_nothing_fills_is_an_error() -> None:
    with pytest.raises(KeyError, match="IMAGE"):
        templates.filled("jobset-standin.yaml")


def test_the_settings_are_ones_that_the_program_takes() -> None:
    (config,) = [it for it in objects("jobset-gate.yaml") if it["kind"] == "ConfigMap"]
    loaded = settings.load(yaml.safe_load(config["data"]["settings.yaml"]))
    assert loaded.barrier.image == "small:1"
    assert loaded.barrier.stream_url == gate.STREAM


def test_nothing_of_jobset_gate_may_do_everything() -> None:
    for rule in (*rules("jobset-gate.yaml", "ClusterRole"), *rules("jobset-gate.yaml", "Role")):
        for part in ("apiGroups", "resources", "verbs"):
            assert "*" not in rule[part]
        assert "secrets" not in rule["resources"]
        assert not {"create", "delete", "update"} & set(rule["verbs"]) or "pods" not in rule["resources"]


def test_rights_on_single_objects_are_on_those_that_the_code_names() -> None:
    single = {name for rule in rules("jobset-gate.yaml", "ClusterRole") for name in rule.get("resourceNames", ())}
    assert single == {registration.MUTATING, registration.VALIDATING, names.JOBSET_CRD}


def test_everything_lies_where_the_controller_looks_for_its_lease() -> None:
    spaces = {it["metadata"].get("namespace") for it in objects("jobset-gate.yaml")} - {None}
    assert spaces == {gate.NAMESPACE} == {Options().namespace}


@pytest.mark.parametrize("file", ["jobset-gate.yaml", "jobset-standin.yaml"])
def test_pods_are_as_restricted_as_pod_security_asks(file: str) -> None:
    """The namespaces say so too, but only the API server would notice, and only in the cluster."""
    for it in objects(file):
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
