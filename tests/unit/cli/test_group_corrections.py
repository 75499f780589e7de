"""What an API server refuses of a group's manifest, and the form that it takes (G1)."""

import copy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobset_gate.cli.manifests import group_corrections
from jobset_gate.podgroups import formats
from jobset_gate.podgroups.model import RawMetadata
from tests.fakes.podgroups.sources import ALIBABA, GANG, KEP24, PLUGINS, Json, pod_group


def test_numbers_in_quotes_and_names_with_capitals_are_put_right() -> None:
    spec: Json = {"minMember": "3", "scheduleTimeoutSeconds": "x"}
    made = pod_group("scheduling.x-k8s.io", "My_Group", namespace="teamA", **spec)
    right = group_corrections.correct_manifest(made)
    assert right.manifest["metadata"] == {"name": "my-group", "namespace": "teama"}
    assert right.manifest["spec"] == {"minMember": 3, "scheduleTimeoutSeconds": "x"}
    assert [it.path for it in right.problems] == ["spec.minMember", "metadata.namespace", "metadata.name"]


LABELS = {"metadata": {"labels": {PLUGINS: "g"}}}
IN_SPEC = {"spec": {"template": LABELS}}


@pytest.mark.parametrize(
    ("api", "kind", "body", "path"),
    [
        ("v1", "Pod", LABELS, "metadata"),
        ("v1", "PodTemplate", {"template": LABELS}, "template.metadata"),
        ("batch/v1", "Job", IN_SPEC, "spec.template.metadata"),
        ("apps/v1", "StatefulSet", IN_SPEC, "spec.template.metadata"),
        ("batch/v1", "CronJob", {"spec": {"jobTemplate": IN_SPEC}}, "spec.jobTemplate.spec.template.metadata"),
        (
            "jobset.x-k8s.io/v1alpha2", "JobSet", {"spec": {"replicatedJobs": [{"name": "w", "template": IN_SPEC}]}},
            "spec.replicatedJobs[0].template.spec.template.metadata",
        ),
    ],
)  # fmt: skip
def test_a_group_is_found_wherever_pods_are_made_of(api: str, kind: str, body: Json, path: str) -> None:
    made = {"apiVersion": api, "kind": kind} | body
    (found,) = group_corrections.pod_metadata(made)
    assert found.path == path
    assert group_corrections.names_group(made)


anything = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 2**40) | st.text(max_size=8) | st.just("teamA/x"),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
keys = st.sampled_from([f"{GANG}name", f"{GANG}groups", f"{GANG}min-available", ALIBABA, PLUGINS, KEP24, "x"])
maps = anything | st.dictionaries(keys, anything)
manifests = st.fixed_dictionaries(
    {
        "metadata": anything
        | st.fixed_dictionaries({}, optional={"labels": maps, "annotations": maps, "name": anything})
    },
    optional={
        "kind": st.sampled_from(["Pod", "PodGroup", "Job"]) | anything,
        "apiVersion": st.sampled_from(["v1", "v1alpha1", "scheduling.x-k8s.io/v1alpha1"]) | anything,
        "spec": anything | st.fixed_dictionaries({"minMember": anything}),
    },
)


@settings(deadline=None)
@given(manifests)
def test_no_oddly_shaped_manifest_brings_the_rules_down_and_twice_is_once(manifest: Json) -> None:
    before = copy.deepcopy(manifest)
    assert group_corrections.names_group(manifest) in (True, False)
    right = group_corrections.correct_manifest(manifest)
    assert manifest == before
    assert group_corrections.correct_manifest(right.manifest).manifest == right.manifest
    assert right.problems or right.manifest == before
    formats.parse_pod_group(right.manifest)
    for meta in group_corrections.pod_metadata(right.manifest):
        said = formats.parse_membership(meta)
        assert said is None or said.key.namespace == meta.namespace
    assert isinstance(RawMetadata.of_object(manifest, ""), RawMetadata)
