"""Paths of objects."""

from __future__ import annotations

import pytest

from jobset_gate.kube.resources import CRDS, JOBS, JOBSETS, NODES, PODS


def test_paths_of_core_and_named_groups_of_namespaced_and_cluster_wide_kinds() -> None:
    assert PODS.path() == "/api/v1/pods"
    assert PODS.path("ns") == "/api/v1/namespaces/ns/pods"
    assert PODS.path("ns", "p", "binding") == "/api/v1/namespaces/ns/pods/p/binding"
    assert JOBS.path("x", "y", "status") == "/apis/batch/v1/namespaces/x/jobs/y/status"
    assert JOBSETS.path("ns", "j") == "/apis/jobset.x-k8s.io/v1alpha2/namespaces/ns/jobsets/j"
    assert NODES.path(None, "n") == "/api/v1/nodes/n"
    assert NODES.path("ignored", "n") == "/api/v1/nodes/n"
    assert CRDS.path(name="c") == "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/c"


def test_api_versions_as_objects_say_them() -> None:
    assert (PODS.api_version, JOBS.api_version) == ("v1", "batch/v1")


def test_a_name_cannot_climb_out_of_its_path() -> None:
    assert PODS.path("ns", "../../x") == "/api/v1/namespaces/ns/pods/..%2F..%2Fx"


@pytest.mark.parametrize(("namespace", "name"), [("ns", ""), (None, "p"), ("", "p")])
def test_a_single_object_needs_its_name_and_namespace(namespace: str | None, name: str) -> None:
    with pytest.raises(ValueError, match="pods"):
        PODS.path(namespace, name)
