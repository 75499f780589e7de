"""What JobSet's typed webhook writes out on CREATE though nobody has set it (measured on the real one)."""

import copy

import pytest

from jobset_gate.injection import inject
from tests.fakes.jobsets import SETTINGS, Json, changed, created, jobset, pod_spec, replicated, updated

CLAIM = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}
MANIFESTS = {
    "the seed's": jobset(),
    "an untargeted job": jobset(replicated(), replicated("b"), config={"targetReplicatedJobs": ["b"]}),
    "init containers": jobset(replicated(pod={"initContainers": [{"name": "own", "image": "x"}]})),
    "a claim of the pod's own": jobset(replicated(pod={"volumes": [CLAIM]})),
    "null for nothing": jobset(replicated(pod={"containers": [{"name": "main", "image": "x", "resources": None}]})),
}
TEMPLATE = ("spec", "replicatedJobs", 0, "template", "spec", "template")


def stored_by_jobset(manifest: Json) -> Json:
    """The stored JobSet, with the members that Go's types write even when they are empty."""
    stored = copy.deepcopy(created(manifest))
    for job in stored["spec"]["replicatedJobs"]:
        pods = job["template"]["spec"]["template"]
        for it in (job["template"], pods):
            it.setdefault("metadata", {})
        for container in (*pods["spec"].get("initContainers", ()), *pods["spec"]["containers"]):
            container["resources"] = container.get("resources") or {}
        for volume in pods["spec"].get("volumes", ()):
            if claim := volume.get("ephemeral", {}).get("volumeClaimTemplate"):
                claim.setdefault("metadata", {})
                claim["spec"].setdefault("resources", {})
    return stored


@pytest.mark.parametrize("manifest", MANIFESTS.values(), ids=MANIFESTS.keys())
def test_the_users_manifest_again_comes_to_the_stored_object_word_by_word(manifest: Json) -> None:
    """`kubectl replace` of the unchanged manifest: metadata.generation stays."""
    stored = stored_by_jobset(manifest)
    assert updated(manifest, stored)["spec"] == stored["spec"]
    assert inject.injected(stored, stored, settings=SETTINGS).operations == []


def test_amounts_that_jobset_wrote_in_the_canonical_form_are_no_change() -> None:
    """Measured: its webhook stores `1000m` as `1`."""
    own = {"limits": {"cpu": "1000m", "memory": "1024Mi"}, "requests": {"cpu": 0.5}}
    canonical = {"limits": {"cpu": "1", "memory": "1Gi"}, "requests": {"cpu": "500m"}}
    manifest = jobset(replicated(pod={"containers": [{"name": "main", "image": "x", "resources": own}]}))
    stored = stored_by_jobset(manifest)
    for container in (*pod_spec(stored)["initContainers"], *pod_spec(stored)["containers"]):
        container["resources"] = copy.deepcopy(canonical)
    assert updated(manifest, stored)["spec"] == stored["spec"]
    other = changed(manifest, "2", *TEMPLATE, "spec", "containers", 0, "resources", "limits", "cpu")
    (main,) = pod_spec(updated(other, stored))["containers"]
    assert main["resources"]["limits"] == {"cpu": "2", "memory": "1Gi"}


def test_amounts_of_claims_too_where_the_schema_compares_by_the_letter() -> None:
    def claims(storage: str) -> Json:
        spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": storage}}}
        return {"volumeClaimPolicies": [{"templates": [{"metadata": {"name": "data"}, "spec": spec}]}]}

    stored = stored_by_jobset(jobset(spec=claims("1Gi")))
    assert updated(jobset(spec=claims("1024Mi")), stored)["spec"] == stored["spec"]


def test_what_the_user_sets_instead_is_left() -> None:
    """JobSet refuses it, in its own words."""
    resources = {"limits": {"cpu": "1"}}
    now = changed(jobset(), resources, *TEMPLATE, "spec", "containers", 0, "resources")
    (main,) = pod_spec(updated(now, stored_by_jobset(jobset())))["containers"]
    assert main["resources"] == resources


def test_other_empty_members_are_not_ours_to_bring_back() -> None:
    """Absent and empty are not the same for a volume's source or a security context."""
    volume = {"name": "v", "emptyDir": {}}
    old = stored_by_jobset(jobset(replicated(pod={"volumes": [volume]})))
    now = jobset(replicated(pod={"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}))
    assert pod_spec(updated(now, old))["volumes"][0] == {"name": "v", "hostPath": {"path": "/x"}}
