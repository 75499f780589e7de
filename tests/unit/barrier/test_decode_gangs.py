"""From objects as an API server stores them to what the rules go by (A2, A5, A10): JobSets and ConfigMaps."""

from typing import Any

import pytest

from jobset_gate.barrier.model import Config, VerdictKind
from jobset_gate.barrier.pending_reason import MAX_MESSAGE
from tests.fakes.wire_objects import BARRIER, TEN_O_CLOCK, Json, read_config_map, read_jobset

# --- JobSets --------------------------------------------------------------------------------------------------------


STREAM = {"name": "JOBSET_GATE_STREAM", "value": "http://gate:8082/v1/gangs/team-a/train/t0k-en_22"}


def replicated(
    name: str = "workers",
    init: tuple[str, ...] = (BARRIER,),
    epoch: str | None = "2",
    env: list[Json] | None = None,
    **spec: Any,
) -> Json:
    template = {
        "metadata": {"annotations": {} if epoch is None else {"jobset-gate.dev/epoch": epoch}},
        "spec": {"initContainers": [{"name": one, "env": env} for one in init], "containers": [{"name": "pytorch"}]},
    }
    wanted = {"parallelism": 100, "completions": 100, "completionMode": "Indexed", "template": template} | spec
    return {"name": name, "replicas": 3, "template": {"spec": wanted}}


def jobset(*jobs: Json, notes: Json | None = None, **spec: Any) -> Json:
    return {
        "metadata": {
            "name": "train",
            "namespace": "team-a",
            "uid": "jobset-uid",
            "creationTimestamp": "2026-08-01T10:00:00Z",
            "annotations": notes,
        },
        "spec": {"groupSchedulingConfig": {"timeoutAfterSeconds": 300}, "replicatedJobs": list(jobs) or [replicated()]}
        | spec,
    }


def test_a_jobset_with_the_field_is_a_gang() -> None:
    seen = read_jobset(jobset())
    assert seen is not None
    assert (seen.uid, seen.created, seen.attempt) == ("jobset-uid", TEN_O_CLOCK, 0)
    assert seen.config == Config(timeout=300)
    (workers,) = seen.replicated_jobs
    assert (workers.replicas, workers.expected, workers.has_barrier, workers.epoch) == (3, 300, True, 2)
    assert (seen.suspended, seen.bypass, seen.releases_on_timeout, seen.managed_elsewhere) == (False,) * 4


def test_a_jobset_with_the_annotation_is_a_gang_on_clusters_without_the_field() -> None:
    text = '{"timeoutAfterSeconds": 60, "targetReplicatedJobs": ["workers"]}'
    seen = read_jobset(jobset(notes={"jobset-gate.dev/group-scheduling-config": text}, groupSchedulingConfig=None))
    assert seen is not None
    assert seen.config == Config(timeout=60, targets=("workers",))


@pytest.mark.parametrize("notes", [None, {}, {"jobset-gate.dev/bypass": "true"}])
def test_a_jobset_without_a_config_is_none_of_our_business(notes: Json | None) -> None:
    assert read_jobset(jobset(notes=notes, groupSchedulingConfig=None)) is None


def test_an_empty_config_asks_for_a_gang_of_all_that_waits_for_ever() -> None:
    seen = read_jobset(jobset(groupSchedulingConfig={}))
    assert seen is not None
    assert seen.config == Config()


@pytest.mark.parametrize(
    "broken",
    [
        {"timeoutAfterSeconds": "soon"},
        {"timeoutAfterSeconds": 0},
        {"unknown": 1},
        [],
        "x",
        3,
        {"targetReplicatedJobs": 7},
    ],
)
def test_a_config_that_came_in_unchecked_is_a_gang_with_a_problem_not_a_crash(broken: Any) -> None:
    seen = read_jobset(jobset(groupSchedulingConfig=broken))
    assert seen is not None
    assert seen.config_problem


def test_the_users_wishes_are_read_from_the_annotations() -> None:
    seen = read_jobset(jobset(notes={"jobset-gate.dev/bypass": "true", "jobset-gate.dev/on-timeout": "Release"}))
    assert seen is not None
    assert (seen.bypass, seen.releases_on_timeout) == (True, True)


@pytest.mark.parametrize(("bypass", "on_timeout"), [("True", "release"), ("yes", "Fail"), ("", ""), ("1", "x")])
def test_only_the_documented_words_open_a_gate(bypass: str, on_timeout: str) -> None:
    seen = read_jobset(jobset(notes={"jobset-gate.dev/bypass": bypass, "jobset-gate.dev/on-timeout": on_timeout}))
    assert seen is not None
    assert (seen.bypass, seen.releases_on_timeout) == (False, False)


@pytest.mark.parametrize(
    ("status_of_it", "finished"),
    [
        ({"terminalState": "Completed"}, True),
        ({"terminalState": "Failed"}, True),
        ({"conditions": [{"type": "Failed", "status": "True"}]}, True),
        ({"conditions": [{"type": "Completed", "status": "True"}]}, True),
        ({"conditions": [{"type": "Suspended", "status": "True"}]}, False),
        ({"conditions": [{"type": "Failed", "status": "False"}]}, False),
        ({"terminalState": ""}, False),
        ({}, False),
    ],
)
def test_a_jobset_is_finished_when_its_status_says_so(status_of_it: Json, *, finished: bool) -> None:
    seen = read_jobset(jobset() | {"status": status_of_it})
    assert seen is not None
    assert seen.finished is finished
    assert seen.failed is (finished and "Failed" in str(status_of_it))


def test_what_the_jobset_controller_said_at_the_end_is_one_short_harmless_line() -> None:
    reported = {"type": "Failed", "status": "True", "message": "job\x1b[2J \n failed" + "x" * 5000}
    seen = read_jobset(jobset() | {"status": {"conditions": [reported]}})
    assert seen is not None
    assert seen.finished_message.startswith("job^[[2J failedxx")
    assert len(seen.finished_message) == MAX_MESSAGE


def test_restarts_suspension_deletion_and_our_condition_are_read() -> None:
    body = jobset(suspend=True)
    body["metadata"]["deletionTimestamp"] = "2026-08-01T11:00:00Z"
    body["status"] = {
        "restarts": 4,
        "conditions": [
            {"type": "Suspended", "status": "True", "reason": "x", "message": "y"},
            {
                "type": "GroupStarted",
                "status": "False",
                "reason": "WaitingForPods",
                "message": "suspended",
                "lastTransitionTime": "2026-08-01T10:00:00Z",
            },
        ],
    }
    seen = read_jobset(body)
    assert seen is not None
    assert (seen.attempt, seen.suspended, seen.deleting) == (4, True, True)
    assert seen.condition is not None
    assert (seen.condition.reason, seen.condition.since) == ("WaitingForPods", "2026-08-01T10:00:00Z")


@pytest.mark.parametrize(
    ("manager", "elsewhere"),
    [
        (None, False),
        ("", False),
        ("jobset.sigs.k8s.io/jobset-controller", False),
        ("kueue.x-k8s.io/multikueue", True),
    ],
)
def test_a_jobset_that_another_cluster_runs_is_known_by_managed_by(manager: str | None, *, elsewhere: bool) -> None:
    seen = read_jobset(jobset(managedBy=manager))
    assert seen is not None
    assert seen.managed_elsewhere is elsewhere


def test_the_token_is_the_end_of_the_url_that_the_barriers_were_given() -> None:
    seen = read_jobset(jobset(replicated("plain", init=("fetch",)), replicated(env=[STREAM])))
    assert seen is not None
    assert seen.token == "t0k-en_22"


@pytest.mark.parametrize(
    "job",
    [
        replicated(),
        replicated(env=None),
        replicated(env=[{"name": "JOBSET_GATE_STREAM"}]),
        replicated(env=[{"name": "JOBSET_GATE_STREAM", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]),
        replicated(env=[{"name": "JOBSET_GATE_STREAM", "value": ""}]),
        replicated(env=[{"name": "ANOTHER", "value": "http://gate/v1/gangs/default/train/t0ken"}]),
        replicated(init=("fetch",), env=[STREAM]),
    ],
)
def test_without_a_url_in_the_barrier_there_is_no_token(job: Json) -> None:
    seen = read_jobset(jobset(job))
    assert seen is not None
    assert seen.token == ""


def test_numbers_left_out_are_what_the_api_means_by_it() -> None:
    bare = {"name": "workers", "template": {"spec": {"template": {"spec": {}}}}}
    seen = read_jobset(jobset(bare))
    assert seen is not None
    (workers,) = seen.replicated_jobs
    assert (workers.replicas, workers.parallelism, workers.completions, workers.expected) == (1, 1, None, 1)
    assert (workers.indexed, workers.has_barrier, workers.epoch) == (True, False, 0)


def test_a_barrier_anywhere_among_the_init_containers_is_one() -> None:
    seen = read_jobset(jobset(replicated(init=("fetch", BARRIER)), replicated("other", init=("fetch",))))
    assert seen is not None
    assert [one.has_barrier for one in seen.replicated_jobs] == [True, False]


@pytest.mark.parametrize(
    "empty", [{"name": "w"}, {"name": "w", "template": {}}, {"name": "w", "template": {"spec": {}}}]
)
def test_a_replicated_job_without_a_template_does_no_harm(empty: Json) -> None:
    seen = read_jobset(jobset(empty))
    assert seen is not None
    assert seen.replicated_jobs[0].expected == 1


def test_nonindexed_jobs_differ_from_indexed_ones() -> None:
    seen = read_jobset(jobset(replicated(completionMode="NonIndexed"), replicated("b", completionMode=None)))
    assert seen is not None
    assert [one.indexed for one in seen.replicated_jobs] == [False, True]


# --- ConfigMaps -----------------------------------------------------------------------------------------------------


def config_map(data: Json | None, **meta: Any) -> Json:
    return {
        "metadata": {
            "name": "train-group-scheduling",
            "namespace": "team-a",
            "uid": "cm-uid",
            "resourceVersion": "42",
            "labels": {"jobset-gate.dev/gate": "true"},
            "annotations": {"jobset-gate.dev/jobset-uid": "jobset-uid"},
            "ownerReferences": [{"apiVersion": "jobset.x-k8s.io/v1alpha2", "kind": "JobSet", "uid": "jobset-uid"}],
        }
        | meta,
        "data": data,
    }


def test_a_gate_is_read_with_its_verdict_and_its_clock() -> None:
    seen = read_config_map(
        config_map(
            {
                "verdict": "release jobset-uid 1 3 AllPodsStarted\nall 300 pods started\n",
                "waiting-since": "jobset-uid 1 3 2026-08-01T10:00:00.000Z",
            }
        )
    )
    assert seen is not None
    assert (seen.gang, seen.jobset_uid, seen.resource_version, seen.canonical) == ("train", "jobset-uid", "42", True)
    assert seen.verdict is not None
    assert (seen.verdict.kind, seen.verdict.message) == (VerdictKind.RELEASE, "all 300 pods started")
    assert seen.waiting_since is not None
    assert seen.waiting_since.at == TEN_O_CLOCK


@pytest.mark.parametrize("data", [None, {}])
def test_an_empty_gate_is_tidy_and_closed(data: Json | None) -> None:
    seen = read_config_map(config_map(data))
    assert seen is not None
    assert (seen.verdict, seen.waiting_since, seen.canonical) == (None, None, True)


@pytest.mark.parametrize(
    "body",
    [
        config_map({"verdict": "open sesame"}),
        config_map({"waiting-since": "yesterday"}),
        config_map({"verdict": ""}),
        config_map({"more": "x"}),
        config_map({"verdict": "release jobset-uid 1 3 AllPodsStarted"}),
        config_map({}, ownerReferences=None),
        config_map({}, ownerReferences=[{"uid": "another"}]),
    ],
)
def test_a_gate_that_a_user_edited_is_not_tidy(body: Json) -> None:
    seen = read_config_map(body)
    assert seen is not None
    assert not seen.canonical


@pytest.mark.parametrize(
    "body",
    [
        config_map({}, labels=None),
        config_map({}, labels={"jobset-gate.dev/gate": "false"}),
        config_map({}, labels={"app": "x"}),
        config_map({}, name="something-else"),
    ],
)
def test_a_configmap_without_our_label_or_name_is_not_ours(body: Json) -> None:
    assert read_config_map(body) is None


def test_a_gate_whose_annotation_is_gone_belongs_to_no_life() -> None:
    seen = read_config_map(config_map({}, annotations=None))
    assert seen is not None
    assert seen.jobset_uid == ""
    assert not seen.canonical
