"""A3: the validating webhook sees what became of the barrier after all mutating webhooks."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection.verify import not_injected
from tests.fakes.jobsets import Json, barrier, changed, created, jobset, pod_spec, replicated, without

TEMPLATE = ("spec", "replicatedJobs", 0, "template", "spec", "template")
POD = "spec.replicatedJobs[0].template.spec.template"
INIT = (*TEMPLATE, "spec", "initContainers")
MAINS = [{"name": name, "image": f"{name}:1"} for name in ("train", "log")]
PREFETCHING = jobset(replicated(pod={"containers": MAINS}), notes={names.PREFETCH_IMAGES: "true"})
COPIER, TRAIN, LOG = range(3)
"""Places of the containers in it that prefetch its images; the barrier follows."""


def paths(new: Json, old: Json | None = None) -> list[str]:
    return [it.path for it in not_injected(new, old)]


def test_a_jobset_that_never_came_to_the_mutating_webhook_is_refused() -> None:
    """Another webhook put the config in behind our back."""
    assert paths(jobset()) == [
        f"metadata.annotations[{names.CONFIG}]",
        f"{POD}.spec.initContainers",
        f"{POD}.spec.volumes",
        f"spec.replicatedJobs[0].template.metadata.labels[{names.GATED}]",
        f"{POD}.metadata.labels[{names.GATED}]",
        f"{POD}.metadata.annotations[{names.EPOCH}]",
    ]
    (error,) = [it for it in not_injected(PREFETCHING, None) if "train:1" in it.message]
    assert error.path == f"{POD}.spec.initContainers"
    assert error.message.startswith("nothing brings log:1, train:1 onto the node before the start barrier: ")


PLAIN, VOLUMES = jobset(), (*TEMPLATE, "spec", "volumes")


@pytest.mark.parametrize(
    ("given", "path", "value"),
    [
        (PLAIN, INIT, []),
        (PLAIN, (*INIT, 0, "command"), ["true"]),
        (PLAIN, (*INIT, 0, "env"), []),
        (PLAIN, (*INIT, 0, "volumeMounts"), []),
        (PLAIN, (*INIT, 0, "name"), "renamed"),
        (PLAIN, VOLUMES, None),
        (PLAIN, (*VOLUMES, 0, "projected", "sources"), []),
        (PREFETCHING, (*INIT, COPIER, "command"), ["true"]),
        (PREFETCHING, (*INIT, TRAIN, "command"), ["/bin/true"]),
        (PREFETCHING, (*INIT, COPIER, "volumeMounts"), []),
        (PREFETCHING, (*INIT, LOG, "volumeMounts"), []),
        (PREFETCHING, (*VOLUMES, 1, "name"), "renamed"),
    ],
)
def test_a_barrier_or_a_prefetch_that_another_webhook_broke_is_refused(
    given: Json, path: tuple[str | int, ...], value: Any
) -> None:
    assert paths(changed(created(given), value, *path)) == [f"{POD}.spec.{path[len(TEMPLATE) + 1]}"]


@pytest.mark.parametrize(
    "order",
    [[1, 2, 3], [0, 2, 3], [0, 1, 3], [3, 0, 1, 2], [0, 1, 3, 2], [1, 0, 2, 3]],
    ids=["no copier", "no image", "no other image", "barrier first", "barrier between", "copier between"],
)
def test_each_image_comes_before_the_barrier_or_the_pod_would_count_too_early(order: list[int]) -> None:
    made = created(PREFETCHING)
    entries = pod_spec(made)["initContainers"]
    assert set(paths(changed(made, [entries[place] for place in order], *INIT))) == {f"{POD}.spec.initContainers"}


def test_a_barrier_twice_is_refused() -> None:
    made = created(jobset())
    pod_spec(made)["initContainers"].append(barrier(made))
    pod_spec(made)["volumes"] *= 2
    assert paths(made) == [f"{POD}.spec.initContainers", f"{POD}.spec.volumes"]


def test_what_other_webhooks_may_do_without_breaking_it_is_accepted() -> None:
    made = changed(created(jobset()), [{"operator": "Exists"}], *TEMPLATE, "spec", "tolerations")
    mirrored = {
        "image": "mirror.local/busybox:1.37",
        "imagePullPolicy": "Always",
        "resources": {"limits": {"cpu": "1"}},
    }
    barrier(made).update(mirrored)
    assert paths(made) == []
    made = changed(created(PREFETCHING), "mirror/train:1", *INIT, TRAIN, "image")
    assert paths(changed(made, "mirror/train:1", *TEMPLATE, "spec", "containers", 0, "image")) == []


def test_an_update_that_lost_a_barrier_or_an_epoch_on_the_way_is_refused() -> None:
    stored = created(jobset())
    assert paths(without(stored, *TEMPLATE, "spec", "initContainers"), stored) == [f"{POD}.spec.initContainers"]
    assert paths(without(stored, *TEMPLATE, "metadata"), stored) != []
    assert paths(without(stored, "spec", "groupSchedulingConfig"), stored) == ["spec.groupSchedulingConfig"]
    stored = changed(created(jobset()), "4", *TEMPLATE, "metadata", "annotations", names.EPOCH)
    fallen = changed(stored, "0", *TEMPLATE, "metadata", "annotations", names.EPOCH)
    (violation,) = not_injected(fallen, stored)
    assert (violation.path, violation.value) == (f"{POD}.metadata.annotations[{names.EPOCH}]", "0")


@pytest.mark.parametrize("members", ["initContainers", "volumes"])
def test_an_entry_that_a_list_lacks_is_shown_as_null_and_another_in_its_place_as_it_is(members: str) -> None:
    stored = created(jobset())
    (violation,) = not_injected(changed(stored, [], *TEMPLATE, "spec", members), stored)
    shown = f"{POD}.spec.{members}[0]: null: is not as the stored JobSet has it: jobset-gate's mutating webhook was not"
    assert str(violation).startswith(shown)
    (violation,) = not_injected(changed(stored, [{"name": "other"}], *TEMPLATE, "spec", members), stored)
    assert str(violation).startswith(f'{POD}.spec.{members}[0]: {{"name":"other"}}: is not as the stored JobSet has it')
