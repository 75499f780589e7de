"""A Job that is a gang: what goes into it, what forbids it, and the epoch that counts its resumptions (K2-K4, K8)."""

import copy
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import inject, restore
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.verify import not_injected
from jobset_gate.injection.warnings import warnings
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobs import CONFIG, EPOCH, TEMPLATE, job, stored, suspended
from tests.fakes.jobsets import Json, changed, dig, jobset, replicated, updated, without
from tests.fakes.jobsets import injected as created

STREAM = Settings(barrier=Barrier(stream_url="http://gate.system.svc:8082"))
NOTE = f"metadata.annotations[{names.CONFIG}]"
OWNED = [{"apiVersion": names.JOBSET_API_VERSION, "kind": "JobSet", "name": "s", "uid": "u", "controller": True}]
START = {"startTime": "2026-08-01T10:00:00Z"}
COMPLETE = {"conditions": [{"type": "Complete", "status": "True"}]}
FOREIGN = {"managedBy": "kueue.x-k8s.io/multikueue"}


def environment(made: Json) -> Json:
    (entry,) = dig(made, *TEMPLATE, "spec", "initContainers")
    return {it["name"]: it.get("value", dig(it, "valueFrom", "fieldRef", "fieldPath")) for it in entry["env"]}


def errors(given: Json) -> dict[str, str]:
    return {it.path: it.message for it in field_errors(given)}


def test_the_barrier_reads_the_generation_from_the_jobs_own_label_and_knows_one_attempt() -> None:
    made = created(job(), STREAM, token="secret")
    assert environment(made) == {
        names.ENV_UID: "metadata.labels['batch.kubernetes.io/controller-uid']",
        names.ENV_ATTEMPT: "0",
        names.ENV_EPOCH: f"metadata.annotations['{names.EPOCH}']",
        names.ENV_LIMIT: "420",
        names.ENV_STREAM: "http://gate.system.svc:8082/v1/jobs/default/run/secret",
        names.ENV_POD: "metadata.uid",
    }
    (volume,) = dig(made, *TEMPLATE, "spec", "volumes")
    assert volume["projected"]["sources"][0]["configMap"]["name"] == "run.job.group-scheduling"
    assert made["metadata"]["labels"] == {names.GATED: "job"}
    assert dig(made, *TEMPLATE, "metadata", "labels") == {names.GATED: "job"}
    assert dig(made, *TEMPLATE, "metadata", "annotations") == {names.EPOCH: "0"}
    assert inject.injected(made, None, settings=STREAM, token="secret").operations == [], "twice is once"
    assert not_injected(made, None) == field_errors(made) == []


@pytest.mark.parametrize("config", [{}, {"timeoutAfterSeconds": None}])
def test_an_empty_config_is_a_gang_without_a_timeout(config: Any) -> None:
    assert environment(created(job(config=config)))[names.ENV_LIMIT] == ""


def test_without_the_annotation_nothing_happens_also_with_the_field_of_jobsets() -> None:
    for given in (job(config=False), job(config=False, spec={"groupSchedulingConfig": {"timeoutAfterSeconds": 3}})):
        assert created(given) == given
        assert field_errors(given) == []
        assert not_injected(given, None) == []


@pytest.mark.parametrize(
    ("given", "path", "sentence"),
    [
        (
            job(config={"targetReplicatedJobs": ["a"]}),
            f"{NOTE}.targetReplicatedJobs",
            "unknown key; the only key is timeoutAfterSeconds",
        ),
        (job(spec={"completionMode": "NonIndexed"}), "spec.completionMode", "needs indexes: set completionMode"),
        (
            job(spec={"completions": 10}),
            "spec.parallelism",
            "6 of the 10 indexes would start later: parallelism must equal completions (an elastic Job may change both",
        ),
        (job(spec={"completions": 0}), "spec.completions", "the gang would have no pods at all"),
        (job(spec={"manualSelector": True}), "spec.manualSelector", "would not carry the Job's UID: leave it out"),
        (job(ownerReferences=OWNED), NOTE, "Jobs of a JobSet are gated by the JobSet: put it there"),
        (
            jobset(changed(replicated(), "{}", "template", *CONFIG)),
            f"spec.replicatedJobs[0].template.{NOTE}",
            "Jobs of a JobSet are gated by the JobSet: put it there",
        ),
        (job(labels={names.GATED: "true"}), f"metadata.labels[{names.GATED}]", "is set by jobset-gate"),
    ],
)
def test_what_forbids_a_creation_is_named_with_its_path(given: Json, path: str, sentence: str) -> None:
    found = errors(given)
    assert set(found) == {path}
    assert sentence in found[path]


def test_only_a_controlling_jobset_gates_a_job() -> None:
    for change in ({"controller": False}, {"kind": "Workflow"}):
        assert errors(job(ownerReferences=[OWNED[0] | change])) == {}


def test_warnings_have_the_paths_of_a_job() -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [124]}}]
    spec = {"activeDeadlineSeconds": 300, "backoffLimit": 7, "podFailurePolicy": {"rules": rules}}
    given = job(spec=spec)
    assert [it.partition(": ")[0] for it in warnings(created(given))] == [
        "spec.activeDeadlineSeconds",
        "spec.backoffLimit",
        "spec.podFailurePolicy.rules[0]",
    ]


def test_a_job_that_never_came_to_the_mutating_webhook_is_refused() -> None:
    assert [it.path for it in not_injected(job(), None)] == [
        "spec.template.spec.initContainers",
        "spec.template.spec.volumes",
        f"metadata.labels[{names.GATED}]",
        f"spec.template.metadata.labels[{names.GATED}]",
        f"spec.template.metadata.annotations[{names.EPOCH}]",
    ]


# --- UPDATE -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "to", "epoch"),
    [
        (stored(), True, "0"),
        (stored(suspend=True), False, "1"),
        (stored(suspend=True, epoch="7"), False, "8"),
        (stored(suspend=True, epoch="7"), True, "7"),
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
    ("status", "left"), [(START | {"active": 2}, "2 pods active, startTime set"), ({"active": 1}, "1 pod active")]
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
    new = suspended(old, False)
    assert (updated(new, old), not_injected(new, old)) == (new, [])
