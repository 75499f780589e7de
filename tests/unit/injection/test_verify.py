"""A3: the validating webhook sees what became of the barrier after all mutating webhooks."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection.verify import not_injected
from tests.fakes.jobsets import Json, barrier, changed, created, jobset, pod_spec, without

TEMPLATE = ("spec", "replicatedJobs", 0, "template", "spec", "template")
POD = "spec.replicatedJobs[0].template.spec.template"


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


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ((*TEMPLATE, "spec", "initContainers"), [], "initContainers"),
        ((*TEMPLATE, "spec", "initContainers", 0, "command"), ["true"], "initContainers"),
        ((*TEMPLATE, "spec", "initContainers", 0, "env"), [], "initContainers"),
        ((*TEMPLATE, "spec", "initContainers", 0, "volumeMounts"), [], "initContainers"),
        ((*TEMPLATE, "spec", "initContainers", 0, "name"), "renamed", "initContainers"),
        ((*TEMPLATE, "spec", "volumes"), None, "volumes"),
        ((*TEMPLATE, "spec", "volumes", 0, "projected", "sources"), [], "volumes"),
    ],
)
def test_a_barrier_that_another_webhook_broke_is_refused(path: tuple[str | int, ...], value: Any, message: str) -> None:
    assert paths(changed(created(jobset()), value, *path)) == [f"{POD}.spec.{message}"]


def test_a_barrier_twice_is_refused() -> None:
    made = created(jobset())
    pod_spec(made)["initContainers"].append(barrier(made))
    pod_spec(made)["volumes"] *= 2
    assert paths(made) == [f"{POD}.spec.initContainers", f"{POD}.spec.volumes"]


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*TEMPLATE, "spec", "initContainers", 0, "image"), "mirror.local/busybox:1.37"),
        ((*TEMPLATE, "spec", "initContainers", 0, "imagePullPolicy"), "Always"),
        ((*TEMPLATE, "spec", "initContainers", 0, "resources"), {"limits": {"cpu": "1"}}),
        ((*TEMPLATE, "spec", "tolerations"), [{"operator": "Exists"}]),
    ],
)
def test_what_other_webhooks_may_do_without_breaking_it_is_accepted(path: tuple[str | int, ...], value: Any) -> None:
    assert paths(changed(created(jobset()), value, *path)) == []


def test_an_update_that_lost_a_barrier_on_the_way_is_refused() -> None:
    stored = created(jobset())
    assert paths(without(stored, *TEMPLATE, "spec", "initContainers"), stored) == [f"{POD}.spec.initContainers"]
    assert paths(without(stored, *TEMPLATE, "metadata"), stored) != []
    assert paths(without(stored, "spec", "groupSchedulingConfig"), stored) == ["spec.groupSchedulingConfig"]


@pytest.mark.parametrize("members", ["initContainers", "volumes"])
def test_an_entry_that_a_list_lacks_is_shown_as_null_and_another_in_its_place_as_it_is(members: str) -> None:
    stored = created(jobset())
    (violation,) = not_injected(changed(stored, [], *TEMPLATE, "spec", members), stored)
    shown = f"{POD}.spec.{members}[0]: null: is not as the stored JobSet has it: jobset-gate's mutating webhook was not"
    assert str(violation).startswith(shown)
    (violation,) = not_injected(changed(stored, [{"name": "other"}], *TEMPLATE, "spec", members), stored)
    assert str(violation).startswith(f'{POD}.spec.{members}[0]: {{"name":"other"}}: is not as the stored JobSet has it')


def test_an_epoch_that_fell_on_the_way_is_refused() -> None:
    stored = changed(created(jobset()), "4", *TEMPLATE, "metadata", "annotations", names.EPOCH)
    fallen = changed(stored, "0", *TEMPLATE, "metadata", "annotations", names.EPOCH)
    (violation,) = not_injected(fallen, stored)
    assert (violation.path, violation.value) == (f"{POD}.metadata.annotations[{names.EPOCH}]", "0")
