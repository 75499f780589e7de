"""UPDATE of a Job that is a gang: its epoch counts resumptions, and all else stays (K3, K4)."""

import copy
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import restore
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.verify import not_injected
from tests.fakes.jobs import CONFIG, EPOCH, TEMPLATE, job, stored, suspended
from tests.fakes.jobsets import Json, changed, dig, updated, without

START = {"startTime": "2026-08-01T10:00:00Z"}
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FOREIGN = {"managedBy": "kueue.x-k8s.io/multikueue"}


@pytest.mark.parametrize(
    ("old", "to", "epoch"),
    [
        (stored(), True, "0"),
        (stored(suspend=True), False, "1"),
        (stored(suspend=True, epoch="7"), False, "8"),
        (stored(suspend=True, epoch="7"), True, "7"),
        (stored(epoch="7"), False, "7"),
        (stored(epoch="7"), True, "7"),
        (stored(suspend=True, status=COMPLETE | START), False, "0"),
        (stored(suspend=True, spec=FOREIGN), False, "0"),
        (stored(suspend=True, spec={"managedBy": names.JOB_CONTROLLER}), False, "1"),
        (stored(suspend=True, epoch="seven"), False, "1"),
    ],
)
def test_the_epoch_counts_resumptions(old: Json, to: bool, epoch: str) -> None:
    new = suspended(old, to)
    made = updated(new, old)
    assert dig(made, *EPOCH) == epoch
    assert field_errors(new, old) == []
    assert not_injected(made, old) == []
    assert updated(made, old) == made, "an API server may ask twice"


@pytest.mark.parametrize("to", [True, False])
def test_verdicts_in_the_template_go_with_a_resumption_and_are_left_where_nothing_may_change(to: bool) -> None:
    verdict = (*TEMPLATE, "metadata", "annotations", names.VERDICT)
    old = changed(stored(suspend=True, epoch="odd"), "release u 0 9 x", *verdict)
    made = updated(suspended(old, to), old)
    assert dig(made, *verdict) == ("release u 0 9 x" if to else None)
    assert dig(made, *EPOCH) == ("odd" if to else "1")
    added = updated(changed(stored(), "release u 0 9 x", *verdict), stored())
    assert dig(added, *verdict) is None


def test_absent_is_not_suspended() -> None:
    assert dig(updated(without(stored(suspend=True), "spec", "suspend"), stored(suspend=True)), *EPOCH) == "1"


@pytest.mark.parametrize("given", ["5", "0", None])
@pytest.mark.parametrize(("old", "to", "epoch"), [(stored(epoch="3"), True, "3"), (stored(suspend=True), False, "1")])
def test_nobody_else_sets_the_epoch(old: Json, to: bool, epoch: str, given: str | None) -> None:
    """Kueue restores the template's annotations when it stops a Job."""
    new = suspended(old, to)
    new = without(new, *EPOCH) if given is None else changed(new, given, *EPOCH)
    assert dig(updated(new, old), *EPOCH) == epoch


@pytest.mark.parametrize(
    ("status", "left"),
    [
        (START | {"active": 2}, "2 pods active, startTime set"),
        ({"active": 1}, "1 pod active"),
        (START, "startTime set"),
    ],
)
def test_a_job_that_is_still_being_suspended_is_not_resumed(status: Json, left: str) -> None:
    old = stored(suspend=True, status=status)
    found = restore.too_early(suspended(old, False), old)
    sentence = f"the Job is still being suspended ({left}): resume it again in a moment"
    assert str(found) == f"spec.suspend: false: {sentence}"


@pytest.mark.parametrize(
    ("old", "to"),
    [
        (stored(suspend=True), False),
        (stored(suspend=True, status={"active": 0, "startTime": None}), False),
        (stored(suspend=True, status=START), True),
        (stored(status=START | {"active": 4}), True),
        (stored(suspend=True, status=START | COMPLETE), False),
        (stored(suspend=True, status=START | {"active": 1}, spec=FOREIGN), False),
        (job(spec={"suspend": True}, status=START), False),
    ],
)
def test_all_others_are_never_too_early(old: Json, to: bool) -> None:
    """The last one was created while the webhook was off: it has no barrier that could pass too early."""
    assert restore.too_early(suspended(old, to), old) is None


def test_a_resumption_that_a_later_webhook_made_is_refused() -> None:
    old = stored(suspend=True)
    (found,) = not_injected(suspended(old, False), old)
    assert found.path == f"spec.template.metadata.annotations[{names.EPOCH}]"
    assert 'must be "1"' in found.message


def test_what_a_replaced_manifest_lacks_is_copied_from_the_stored_job_and_nothing_else() -> None:
    old = stored(notes={names.PREFETCH_IMAGES: "true"}, labels={"team": "a"}, spec={"successPolicy": {"rules": []}})
    old["spec"]["selector"] = {"matchLabels": {"batch.kubernetes.io/controller-uid": "u"}}
    manifest = job(config=False, pod={"restartPolicy": "Never"})
    made = updated(manifest, old)
    wanted = copy.deepcopy(old)
    del wanted["spec"]["selector"], wanted["spec"]["successPolicy"], wanted["metadata"]["labels"]["team"]
    assert made == wanted


@pytest.mark.parametrize(
    ("new", "path", "sentence"),
    [
        (changed(stored(), "{}", *CONFIG), f"metadata.annotations[{names.CONFIG}]", "is immutable; was"),
        (
            changed(stored(), "i:2", "metadata", "annotations", names.BARRIER_IMAGE),
            f"metadata.annotations[{names.BARRIER_IMAGE}]",
            "is fixed when the Job is created",
        ),
        (
            changed(stored(), "other", *TEMPLATE, "spec", "initContainers", 0, "image"),
            "spec.template.spec.initContainers[0]",
            "differs from what jobset-gate put in when the Job was created",
        ),
    ],
)
def test_what_is_fixed_is_refused(new: Json, path: str, sentence: str) -> None:
    (found,) = field_errors(new, stored())
    assert found.path == path
    assert sentence in found.message


def test_a_config_that_comes_later_is_refused() -> None:
    (found,) = field_errors(job(), job(config=False))
    assert found.message == "may only be set when the Job is created"


@pytest.mark.parametrize("spec", [{"parallelism": 2}, {"parallelism": 0}, {"parallelism": 8, "completions": 8}])
def test_an_elastic_job_may_change_its_size_afterwards(spec: Any) -> None:
    new = stored()
    new["spec"] |= spec
    assert field_errors(new, stored()) == []
    assert updated(new, stored()) == new


def test_a_job_from_before_the_webhook_stays_as_it_is() -> None:
    old = job(spec={"suspend": True})
    assert updated(suspended(old, False), old) == suspended(old, False)
    assert not_injected(suspended(old, False), old) == []
