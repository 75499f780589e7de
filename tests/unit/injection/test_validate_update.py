"""A2: what an update may change, and what is fixed when the JobSet is created."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import validate
from tests.fakes.jobsets import Json, changed, created, jobset, replicated, without
from tests.unit.injection.test_validate import FIELD, NOTE, POD, RANGE, TEMPLATE


def messages(new: Json, old: Json | None = None) -> list[str]:
    return [str(it) for it in validate.field_errors(new, old)]


STORED = created(jobset())
IMAGED = created(jobset(notes={names.BARRIER_IMAGE: "x:1", names.BYPASS: "false", names.ON_TIMEOUT: "Fail"}))
UNREADABLE = jobset(config=False, notes={names.CONFIG: "garbage"})
CONFIG = ("spec", "groupSchedulingConfig")
NOTES = ("metadata", "annotations")
IMAGE = (*NOTES, names.BARRIER_IMAGE)
IMAGE_PATH = f"metadata.annotations[{names.BARRIER_IMAGE}]"
OURS = STORED["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["initContainers"]
EQUAL = {"timeoutAfterSeconds": 300, "targetReplicatedJobs": []}
SPEC = (*TEMPLATE, "spec")
ANNOTATED = created(jobset(config=False, notes={names.CONFIG: '{"timeoutAfterSeconds":300}'}))


@pytest.mark.parametrize(
    ("new", "old"),
    [
        (jobset(), STORED),
        (without(STORED, *CONFIG), STORED),
        (changed(STORED, EQUAL, *CONFIG), STORED),
        (changed(ANNOTATED, {"timeoutAfterSeconds": 300}, *CONFIG), ANNOTATED),
        (changed(STORED, "false", *NOTES, names.PREFETCH_IMAGES), STORED),
        (changed(IMAGED, "true", *NOTES, names.BYPASS), IMAGED),
        (changed(IMAGED, "Release", *NOTES, names.ON_TIMEOUT), IMAGED),
        (without(IMAGED, *NOTES, names.BARRIER_IMAGE), IMAGED),
    ],
)
def test_an_update_that_says_the_same_or_less_or_what_may_change_is_accepted(new: Json, old: Json) -> None:
    assert messages(new, old) == []


PREFETCHING = created(jobset(notes={names.PREFETCH_IMAGES: "true"}))
PREFETCH = (*NOTES, names.PREFETCH_IMAGES)
PREFETCH_PATH = f"metadata.annotations[{names.PREFETCH_IMAGES}]"
WAS = 'is immutable; was {"timeoutAfterSeconds":300}'
LATER = "may only be set when the JobSet is created"
UNGATED = created(jobset(config=False))
IN_PLACE = {"failurePolicy": {"restartStrategy": "InPlaceRestart"}}
RESTARTING = created(jobset(spec=IN_PLACE, notes={names.ON_TIMEOUT: "Release"}))
ANOTHER = [{"name": names.BARRIER_CONTAINER, "image": "x"}]


@pytest.mark.parametrize(
    ("old", "path", "value", "wanted"),
    [
        (STORED, (*NOTES, names.CONFIG), "{}", f'{NOTE}: "{{}}": {WAS}'),
        (STORED, CONFIG, {"timeoutAfterSeconds": 0}, f"{FIELD}.timeoutAfterSeconds: 0: {RANGE}"),
        (UNGATED, CONFIG, {}, f"{FIELD}: {{}}: {LATER}"),
        (UNGATED, (*NOTES, names.CONFIG), "{}", f'{NOTE}: "{{}}": {LATER}'),
        (IMAGED, IMAGE, "x:2", f'{IMAGE_PATH}: "x:2": is fixed when the JobSet is created; was "x:1"'),
        (STORED, IMAGE, "x:2", f'{IMAGE_PATH}: "x:2": is fixed when the JobSet is created; was not set then'),
        (PREFETCHING, PREFETCH, "false", f'{PREFETCH_PATH}: "false": is fixed when the JobSet is created; was "true"'),
        (STORED, PREFETCH, "true", f'{PREFETCH_PATH}: "true": is fixed when the JobSet is created; was not set then'),
        (STORED, (*SPEC, "initContainers", 0, "image"), "other", f"{POD}.initContainers[0]: "),
        (STORED, (*SPEC, "volumes", 0, "projected"), "other", f"{POD}.volumes[0]: "),
        (STORED, (*SPEC, "initContainers"), ANOTHER, f"{POD}.initContainers[0]: "),
        (STORED, (*SPEC, "initContainers"), OURS * 2, f"{POD}.initContainers[1].name: "),
        (STORED, (*SPEC, "containers"), [{"name": "m"}, *ANOTHER], f"{POD}.containers[1].name: "),
        (RESTARTING, (*NOTES, names.ON_TIMEOUT), "Fail", "spec.failurePolicy.restartStrategy: "),
    ],
)
def test_an_update_that_changes_what_is_fixed_is_denied(
    old: Json, path: tuple[str | int, ...], value: Any, wanted: str
) -> None:
    (message,) = messages(changed(old, value, *path), old)
    assert message.startswith(wanted)


def test_a_changed_config_is_one_violation_that_names_old_and_new() -> None:
    stored = created(jobset())
    new = changed(stored, {"timeoutAfterSeconds": 600}, "spec", "groupSchedulingConfig")
    assert messages(new, stored) == [
        f'{FIELD}: {{"timeoutAfterSeconds":600}}: is immutable; was {{"timeoutAfterSeconds":300}}'
    ]


def test_what_the_old_object_had_already_is_not_held_against_an_update() -> None:
    """Made while the webhook was off: it must stay possible to suspend it, label it, take it away."""
    odd = jobset(
        replicated(pod={"initContainers": [{"name": names.BARRIER_CONTAINER}], "os": {"name": "windows"}}),
        replicated("b"),
        config={"timeoutAfterSeconds": 0, "targetReplicatedJobs": ["nobody"]},
        notes={names.CONFIG: "garbage", names.BYPASS: "x"},
        spec={"startupPolicy": {"startupPolicyOrder": "InOrder"}},
    )
    assert messages(odd) != []
    assert messages(changed(odd, True, "spec", "suspend"), odd) == []
    (violation,) = validate.field_errors(changed(odd, "y", "metadata", "annotations", names.BYPASS), odd)
    assert violation.path == f"metadata.annotations[{names.BYPASS}]"
