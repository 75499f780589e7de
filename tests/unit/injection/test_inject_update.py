"""A3, A5: what UPDATE keeps, restores and counts."""

import copy
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import (
    SETTINGS,
    Json,
    barrier,
    changed,
    created,
    epoch,
    jobset,
    pod_spec,
    pod_template,
    replicated,
    updated,
    without,
)

TEMPLATE = ("spec", "replicatedJobs", 0, "template", "spec", "template")
EPOCH = (*TEMPLATE, "metadata", "annotations", names.EPOCH)
INIT = (*TEMPLATE, "spec", "initContainers")


def suspend(it: Json, value: bool | None = True) -> Json:
    return changed(it, value, "spec", "suspend")


def with_epoch(it: Json, value: str, index: int = 0) -> Json:
    return changed(it, value, "spec", "replicatedJobs", index, *TEMPLATE[3:], "metadata", "annotations", names.EPOCH)


def test_an_upgrade_with_another_image_and_other_settings_changes_no_gang_that_is_there() -> None:
    stored = created(jobset())
    barrier(stored)["command"] = ["sh", "-c", "an older script"]
    barrier(stored)["env"].append({"name": "OLDER", "value": "1"})
    upgraded = Settings(barrier=Barrier(image="busybox:9", grace_seconds=1, poll_seconds=2, run_as_user=None))
    assert updated(jobset(), stored, upgraded) == stored
    assert barrier(updated(suspend(jobset()), stored, upgraded)) == barrier(stored)


# --- Places ---------------------------------------------------------------------------------------------------------


def test_replicated_jobs_are_matched_by_name() -> None:
    stored = created(jobset(replicated("a"), replicated("b"), config={"targetReplicatedJobs": ["b"]}))
    new = jobset(replicated("b"), replicated("a"), config={"targetReplicatedJobs": ["b"]})
    made = updated(new, stored)
    assert barrier(made, 0) == barrier(stored, 1)
    assert "initContainers" not in pod_spec(made, 1)


NOTES = ("metadata", "annotations")
JOB = ("spec", "replicatedJobs", 0, "template")
BOTH = created(
    jobset(
        replicated(pod={"initContainers": [{"name": "own"}], "volumes": [{"name": "own", "emptyDir": {}}]}),
        replicated("untargeted"),
        config={"targetReplicatedJobs": ["workers"]},
        notes={names.PREFETCH_IMAGES: "false", names.BARRIER_IMAGE: "x:1"},
        spec={"failurePolicy": {"rules": [{"action": "FailJobSet"}]}, "volumeClaimPolicies": [{"templates": []}]},
    )
)
for key, behind in (("initContainers", {"name": "behind"}), ("volumes", {"name": "behind", "emptyDir": {}})):
    pod_spec(BOTH)[key].append(behind)


@pytest.mark.parametrize(
    "path",
    [
        ("spec", "groupSchedulingConfig"),
        NOTES,
        (*NOTES, names.CONFIG),
        (*NOTES, names.BARRIER_IMAGE),
        (*JOB, "metadata"),
        (*TEMPLATE, "metadata"),
        (*INIT, 1),
        (*TEMPLATE, "spec", "volumes", 1),
        ("spec", "successPolicy"),
        ("spec", "network"),
        ("spec", "network", "publishNotReadyAddresses"),
        ("spec", "failurePolicy", "rules", 0, "name"),
        ("spec", "volumeClaimPolicies", 0, "retentionPolicy"),
        (*JOB, "spec", "completionMode"),
        ("spec", "replicatedJobs", 1, "template", "spec", "completionMode"),
        (*TEMPLATE, "spec", "restartPolicy"),
    ],
)
def test_what_is_fixed_at_creation_comes_back(path: tuple[str | int, ...]) -> None:
    """What was put in, to its place, and what JobSet defaults on CREATE only."""
    assert updated(without(BOTH, *path), BOTH) == BOTH
    if path[-1] == "metadata":
        assert updated(changed(BOTH, "false", *path, "labels", names.GATED), BOTH) == BOTH


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*NOTES, names.CONFIG), '{"targetReplicatedJobs": ["workers"]}'),
        ((*NOTES, names.BYPASS), "true"),
        ((*NOTES, names.ON_TIMEOUT), "Release"),
        (("spec", "successPolicy"), {"operator": "Any"}),
        (("spec", "network"), {"enableDNSHostnames": False, "publishNotReadyAddresses": True}),
        ((*JOB, "spec", "completionMode"), "NonIndexed"),
        ((*TEMPLATE, "spec", "restartPolicy"), "Never"),
    ],
)
def test_what_the_user_changes_is_not_ours_to_undo(path: tuple[str | int, ...], value: Any) -> None:
    new = changed(BOTH, value, *path)
    assert updated(new, BOTH) == new
    if names.CONFIG not in path and path[:2] == NOTES:
        assert updated(BOTH, new) == BOTH, "and may be taken away"


def test_on_a_cluster_without_the_field_the_annotation_goes_on_alone() -> None:
    """The schema has pruned the field from both objects."""
    stored = without(created(jobset()), "spec", "groupSchedulingConfig")
    manifest = without(jobset(), "spec", "groupSchedulingConfig")
    assert updated(manifest, stored) == stored


def test_empty_members_that_jobsets_webhook_has_stored_do_not_make_the_manifest_another_one() -> None:
    """Its schema calls these fields immutable and compares them by the letter."""
    claims = [{"templates": [{"metadata": {"name": "data"}, "spec": {"accessModes": ["ReadWriteMany"]}}]}]
    manifest = jobset(spec={"volumeClaimPolicies": claims, "failurePolicy": {"maxRestarts": 2}})
    stored = created(copy.deepcopy(manifest))
    stored["spec"]["volumeClaimPolicies"][0]["templates"][0]["status"] = {}
    stored["spec"]["failurePolicy"]["rules"] = []
    assert updated(manifest, stored) == stored
    other = changed(manifest, 3, "spec", "failurePolicy", "maxRestarts")
    assert updated(other, stored)["spec"]["failurePolicy"] == {"maxRestarts": 3}


# --- Epochs ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("before", "after"), [(True, True), (True, False), (True, None), (False, None), (None, False)])
def test_only_false_to_true_counts_as_suspending(before: bool | None, after: bool | None) -> None:
    stored = with_epoch(suspend(created(jobset()), before), "4")
    assert epoch(updated(suspend(stored, after), stored)) == "4"


def test_all_targets_get_the_highest_epoch_when_jobset_allows_it() -> None:
    stored = with_epoch(with_epoch(created(jobset(replicated(), replicated("b"))), "2"), "7", 1)
    suspended = suspend(stored)
    running = changed(stored, "x", "metadata", "annotations", "other")
    cases = ((suspended, stored, ("8", "8")), (running, stored, ("2", "7")), (stored, suspended, ("7", "7")))
    for new, old, epochs in cases:
        made = updated(new, old)
        assert (epoch(made, 0), epoch(made, 1)) == epochs


@pytest.mark.parametrize("old", ["garbage", "-5", "", "1e3", "٣"])
def test_an_old_epoch_that_is_none_counts_as_zero(old: str) -> None:
    stored = with_epoch(created(jobset()), old)
    assert epoch(updated(suspend(stored), stored)) == "1"


@pytest.mark.parametrize("key", [names.VERDICT, names.NUDGE])
def test_a_decision_cannot_be_put_into_a_template_and_one_that_is_there_goes_as_soon_as_jobset_allows(key: str) -> None:
    stored = created(jobset())
    odd = changed(stored, "release x 0 9 AllPodsStarted", *TEMPLATE, "metadata", "annotations", key)
    assert updated(odd, stored) == stored
    assert inject.injected(copy.deepcopy(odd), odd, settings=SETTINGS).operations == []
    assert updated(stored, odd) == odd
    for old in (stored, odd):
        assert key not in pod_template(updated(suspend(odd), old))["metadata"]["annotations"]


@pytest.mark.parametrize("new", [jobset(), suspend(jobset())])
def test_where_there_is_no_barrier_none_is_put_in_and_no_epoch_is_counted(new: Json) -> None:
    made = updated(new, jobset())
    assert "initContainers" not in pod_spec(made)
    assert epoch(made) is None
    assert "volumes" not in pod_spec(made)
    assert made["metadata"]["annotations"] == {names.CONFIG: '{"timeoutAfterSeconds":300}'}, "kept from then on"


# --- What JobSet's typed webhook writes out on CREATE though nobody has set it (measured on the real one) -------------

CLAIM = {"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}
TYPED = {
    "the seed's": jobset(),
    "a claim of the pod's own": jobset(replicated(pod={"volumes": [CLAIM]})),
    "null for nothing": jobset(replicated(pod={"containers": [{"name": "main", "image": "x", "resources": None}]})),
}


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


@pytest.mark.parametrize("manifest", TYPED.values(), ids=TYPED.keys())
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


def test_other_empty_members_are_not_ours_to_bring_back() -> None:
    """Absent and empty are not the same for a volume's source or a security context."""
    volume = {"name": "v", "emptyDir": {}}
    old = stored_by_jobset(jobset(replicated(pod={"volumes": [volume]})))
    now = jobset(replicated(pod={"volumes": [{"name": "v", "hostPath": {"path": "/x"}}]}))
    assert pod_spec(updated(now, old))["volumes"][0] == {"name": "v", "hostPath": {"path": "/x"}}
