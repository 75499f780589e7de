"""A8 after CREATE: what UPDATE keeps and refuses, reserved names, and what the validating webhook looks at."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.verify import not_injected
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobsets import Json, changed, created, jobset, pod_spec, replicated, updated
from tests.unit.injection.test_prefetch import BARRIER, COPIER, FIRST, INIT, SECOND, TEMPLATE, main, named, wanting

POD = "spec.replicatedJobs[0].template.spec.template.spec"
OTHER_SETTINGS = Settings(barrier=Barrier(image="busybox:9", grace_seconds=1, run_as_user=None))


def message(new: Json, old: Json | None = None) -> list[str]:
    return [str(it) for it in field_errors(new, old)]


def paths(new: Json, old: Json | None = None) -> list[str]:
    return [it.path for it in field_errors(new, old)]


def lacking(new: Json, old: Json | None = None) -> list[str]:
    """What the validating webhook refuses."""
    return [it.path for it in not_injected(new, old)]


@pytest.mark.parametrize(
    "manifest",
    [wanting(main(), main("log:1", "log")), wanting(init=[{"name": "own", "image": "train:1"}])],
    ids=["two images", "nothing to do"],
)
def test_the_manifest_again_and_an_upgrade_come_to_the_stored_object(manifest: Json) -> None:
    stored = created(manifest)
    assert updated(manifest, stored) == updated(manifest, stored, OTHER_SETTINGS) == stored
    assert message(manifest, stored) == lacking(stored, stored) == []
    suspended = updated(changed(manifest, True, "spec", "suspend"), stored, OTHER_SETTINGS)
    assert pod_spec(suspended) == pod_spec(stored)


@pytest.mark.parametrize(
    "order",
    [[0, 2, 3], [0, 1, 3], [0, 1, 2], [1, 2, 3, 0], [1, 0, 2, 3], [3, 2, 1, 0], [0, 1, 2, 3, 1]],
    ids=["no copier", "no pull", "no barrier", "behind ours", "among ours", "turned", "twice"],
)
def test_ours_come_back_to_their_places_behind_the_users_own(order: list[int]) -> None:
    stored = created(wanting(init=[{"name": "own", "image": "x"}]))
    entries = pod_spec(stored)["initContainers"]
    assert updated(changed(stored, [entries[index] for index in order], *INIT), stored) == stored


# --- Decided when it is made ----------------------------------------------------------------------------------------


def test_the_annotation_is_fixed_at_creation() -> None:
    path = f"metadata.annotations[{names.PREFETCH_IMAGES}]"
    assert message(
        changed(wanting(), "false", "metadata", "annotations", names.PREFETCH_IMAGES), created(wanting())
    ) == [f'{path}: "false": is fixed when the JobSet is created; was "true"']
    assert message(wanting(), created(jobset())) == [
        f'{path}: "true": is fixed when the JobSet is created; was not set then'
    ]


def test_a_gang_without_it_never_gets_it_later() -> None:
    stored = created(jobset())
    assert named(updated(wanting(), stored)) == [BARRIER]


@pytest.mark.parametrize("index", [0, 1])
@pytest.mark.parametrize("member", ["image", "command", "imagePullPolicy"])
def test_a_container_that_is_changed_on_purpose_is_refused_and_not_undone_in_silence(index: int, member: str) -> None:
    stored = created(wanting())
    new = changed(stored, "other", *INIT, index, member)
    assert paths(new, stored) == [f"{POD}.initContainers[{index}]"]
    assert updated(new, stored) == new


@pytest.mark.parametrize("key", ["containers", "initContainers"])
def test_a_volume_that_looks_like_ours_and_that_the_user_mounts_is_the_users(key: str) -> None:
    """Taken for ours it would be taken away, and the API server would speak of a mount without a volume."""
    mounts = [{"name": COPIER, "mountPath": "/scratch"}]
    pod = {key: [{"name": "first", "image": "a:1", "volumeMounts": mounts}]}
    job = replicated(pod={**pod, "volumes": [{"name": COPIER, "emptyDir": {}}]})
    assert paths(jobset(job)) == [f"{POD}.volumes[0].name"]


@pytest.mark.parametrize("edit", [{"sizeLimit": "8Mi"}, {"medium": "Memory"}])
def test_a_volume_of_ours_that_another_webhook_has_limited_stays_ours(edit: Json) -> None:
    """It ran between our two calls at CREATE; afterwards it is what the stored object has."""
    made = created(wanting())
    limited = changed(made, edit, *TEMPLATE, "spec", "volumes", 1, "emptyDir")
    assert message(limited) == []
    assert lacking(limited) == []
    assert message(limited, limited) == []
    assert updated(wanting(), limited) == limited


@pytest.mark.parametrize("name", ["group-scheduling-prefetcher", "group-scheduling-prefetch-a", "prefetch"])
def test_a_name_that_only_begins_alike_is_the_users(name: str) -> None:
    assert message(jobset(replicated(pod={"containers": [main("a:1", name)]}))) == []


# --- After all other webhooks ---------------------------------------------------------------------------------------


def test_a_jobset_that_never_came_to_the_mutating_webhook_is_refused_for_this_too() -> None:
    (said,) = [it for it in not_injected(wanting(), None) if "train:1" in it.message]
    assert said.path == f"{POD}.initContainers"
    assert said.message.startswith("nothing brings train:1 onto the node before the start barrier: ")


@pytest.mark.parametrize("lost", [COPIER, FIRST, SECOND])
def test_one_that_another_webhook_took_out_is_missed(lost: str) -> None:
    made = created(wanting(main(), main("log:1", "log")))
    rest = [it for it in pod_spec(made)["initContainers"] if it["name"] != lost]
    assert lacking(changed(made, rest, *INIT)) == [f"{POD}.initContainers"]


@pytest.mark.parametrize(
    ("path", "value", "where"),
    [
        ((*INIT, 0, "command"), ["true"], "initContainers"),
        ((*INIT, 1, "command"), ["/bin/true"], "initContainers"),
        ((*INIT, 1, "command"), None, "initContainers"),
        ((*INIT, 0, "volumeMounts"), [], "initContainers"),
        ((*INIT, 1, "volumeMounts"), [], "initContainers"),
        ((*TEMPLATE, "spec", "volumes", 1, "name"), "renamed", "volumes"),
    ],
)
def test_one_that_another_webhook_broke_is_refused(path: tuple[str | int, ...], value: Any, where: str) -> None:
    assert lacking(changed(created(wanting()), value, *path)) == [f"{POD}.{where}"]


def test_a_barrier_before_them_would_count_the_pod_too_early() -> None:
    made = created(wanting())
    copier, runner, barrier = pod_spec(made)["initContainers"]
    for order in ([barrier, copier, runner], [copier, barrier, runner], [runner, copier, barrier]):
        assert set(lacking(changed(made, order, *INIT))) == {f"{POD}.initContainers"}


def test_a_mirror_that_renames_the_image_everywhere_is_accepted() -> None:
    made = changed(created(wanting()), "mirror/train:1", *INIT, 1, "image")
    assert lacking(changed(made, "mirror/train:1", *TEMPLATE, "spec", "containers", 0, "image")) == []
