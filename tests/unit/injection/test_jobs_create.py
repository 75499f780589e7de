"""CREATE of a Job that is a gang: what goes into it, and what forbids it (K2, K3, K8)."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.injection.validate import field_errors
from jobset_gate.injection.verify import not_injected
from jobset_gate.injection.warnings import warnings
from jobset_gate.settings import Barrier, Settings
from tests.fakes.jobs import CONFIG, TEMPLATE, job
from tests.fakes.jobsets import Json, changed, dig, jobset, replicated, without
from tests.fakes.jobsets import injected as created

STREAM = Settings(barrier=Barrier(stream_url="http://gate.system.svc:8082"))
NOTE = f"metadata.annotations[{names.CONFIG}]"
OWNED = [{"apiVersion": names.JOBSET_API_VERSION, "kind": "JobSet", "name": "s", "uid": "u", "controller": True}]


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


def test_twice_is_once_and_the_result_is_what_the_validating_webhook_wants() -> None:
    made = created(job())
    assert inject.injected(made, None, settings=Settings()).operations == []
    assert not_injected(made, None) == []
    assert field_errors(made) == []


@pytest.mark.parametrize(("config", "limit"), [({}, ""), ({"timeoutAfterSeconds": None}, ""), ("{}", "")])
def test_an_empty_config_is_a_gang_without_a_timeout(config: Any, limit: str) -> None:
    assert environment(created(job(config=config)))[names.ENV_LIMIT] == limit


def test_without_the_annotation_nothing_happens_also_with_the_field_of_jobsets() -> None:
    for given in (job(config=False), job(config=False, spec={"groupSchedulingConfig": {"timeoutAfterSeconds": 3}})):
        assert created(given) == given
        assert field_errors(given) == []
        assert not_injected(given, None) == []


def test_verdicts_in_the_template_are_removed_and_the_other_annotations_work() -> None:
    notes = {names.PREFETCH_IMAGES: "true", names.BARRIER_IMAGE: "mirror.local/busybox:1"}
    given = changed(job(notes=notes), "release u 0 0 x", *TEMPLATE, "metadata", "annotations", names.VERDICT)
    made = created(given)
    assert dig(made, *TEMPLATE, "metadata", "annotations") == {names.EPOCH: "0"}
    inits = dig(made, *TEMPLATE, "spec", "initContainers")
    assert [it["name"] for it in inits][-1] == names.BARRIER_CONTAINER
    assert len(inits) == 3
    assert inits[-1]["image"] == "mirror.local/busybox:1"


@pytest.mark.parametrize(
    ("given", "path", "sentence"),
    [
        (
            job(config={"targetReplicatedJobs": ["a"]}),
            f"{NOTE}.targetReplicatedJobs",
            "unknown key; the only key is timeoutAfterSeconds",
        ),
        (job(config="[]"), NOTE, "must be an object with the key timeoutAfterSeconds, which is optional"),
        (job(config={"timeoutAfterSeconds": 0}), f"{NOTE}.timeoutAfterSeconds", "must be an integer from 1 to"),
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
        (
            job(pod={"nodeSelector": {"kubernetes.io/os": "windows"}}),
            "spec.template.spec.nodeSelector[kubernetes.io/os]",
            "the start barrier cannot run in Windows pods",
        ),
        (
            job(pod={"initContainers": [{"name": names.BARRIER_CONTAINER, "image": "i"}]}),
            "spec.template.spec.initContainers[0].name",
            "is reserved for jobset-gate's start barrier",
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


def test_all_that_is_wrong_is_named_at_once() -> None:
    given = job(config={"timeoutAfterSeconds": 0, "x": 1}, spec={"completionMode": "NonIndexed", "parallelism": 1})
    assert list(errors(given)) == [
        f"{NOTE}.timeoutAfterSeconds",
        f"{NOTE}.x",
        "spec.completionMode",
        "spec.parallelism",
    ]


def test_a_group_must_be_the_gang() -> None:
    notes = {"gang.scheduling.koordinator.sh/name": "g", "gang.scheduling.koordinator.sh/min-available": "3"}
    given = changed(job(), notes, *TEMPLATE, "metadata", "annotations")
    (found,) = errors(given).items()
    assert found == (
        "spec.template.metadata.annotations[gang.scheduling.koordinator.sh/min-available]",
        "must equal what the start barrier waits for: 3 pods here, 4 there",
    )


def test_warnings_have_the_paths_of_a_job() -> None:
    rules = [{"action": "Ignore", "onExitCodes": {"operator": "In", "values": [124]}}]
    spec = {"activeDeadlineSeconds": 300, "backoffLimit": 7, "podFailurePolicy": {"rules": rules}}
    given = job(spec=spec, notes={"jobset-gate.dev/bypas": "true"})
    assert [it.partition(": ")[0] for it in warnings(created(given))] == [
        "metadata.annotations[jobset-gate.dev/bypas]",
        "spec.activeDeadlineSeconds",
        "spec.backoffLimit",
        "spec.podFailurePolicy.rules[0]",
    ]
    assert "without effect on a Job: did you mean jobset-gate.dev/bypass?" in warnings(created(given))[0]


@pytest.mark.parametrize(
    ("path", "named"),
    [
        ((*TEMPLATE, "spec", "initContainers"), "spec.template.spec.initContainers"),
        ((*TEMPLATE, "spec", "volumes"), "spec.template.spec.volumes"),
        ((*TEMPLATE, "metadata", "labels", names.GATED), f"spec.template.metadata.labels[{names.GATED}]"),
        (("metadata", "labels", names.GATED), f"metadata.labels[{names.GATED}]"),
        ((*TEMPLATE, "metadata", "annotations", names.EPOCH), f"spec.template.metadata.annotations[{names.EPOCH}]"),
    ],
)
def test_a_barrier_that_another_webhook_damaged_is_refused(path: tuple[str, ...], named: str) -> None:
    assert [it.path for it in not_injected(without(created(job()), *path), None)] == [named]


def test_the_defaults_that_an_api_server_adds_to_a_job_are_no_damage() -> None:
    made = created(job())
    (volume,) = dig(made, *TEMPLATE, "spec", "volumes")
    volume["projected"]["sources"][1]["downwardAPI"]["items"][0]["fieldRef"]["apiVersion"] = "v1"
    assert not_injected(made, None) == []
    volume["projected"]["sources"][0]["configMap"]["optional"] = False
    assert [it.path for it in not_injected(made, None)] == ["spec.template.spec.volumes"]
