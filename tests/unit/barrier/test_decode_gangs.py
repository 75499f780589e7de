"""From objects as an API server stores them to what the rules go by (A2, A5, A10): JobSets and ConfigMaps."""

from typing import Any

import pytest

from jobset_gate.barrier.model import Config, ConfigMapSeen, VerdictKind, WorkloadSeen
from jobset_gate.barrier.pending_reason import MAX_MESSAGE
from tests.fakes import wire_objects
from tests.fakes.present import present
from tests.fakes.wire_objects import BARRIER, TEN_O_CLOCK, Json

# --- JobSets --------------------------------------------------------------------------------------------------------

STREAM = {"name": "JOBSET_GATE_STREAM", "value": "http://gate:8082/v1/gangs/team-a/train/t0k-en_22"}


def replicated(
    name: str = "workers", init: tuple[str, ...] = (BARRIER,), env: list[Json] | None = None, **spec: Any
) -> Json:
    template = {
        "metadata": {"annotations": {"jobset-gate.dev/epoch": "2"}},
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


def read_jobset(body: Json) -> WorkloadSeen:
    return present(wire_objects.read_jobset(body))


def read_config_map(body: Json) -> ConfigMapSeen:
    return present(wire_objects.read_config_map(body))


def test_a_jobset_with_the_field_is_a_gang() -> None:
    seen = read_jobset(jobset())
    assert (seen.uid, seen.created, seen.attempt) == ("jobset-uid", TEN_O_CLOCK, 0)
    assert seen.config == Config(timeout=300)
    (workers,) = seen.replicated_jobs
    assert (workers.replicas, workers.expected, workers.has_barrier, workers.epoch) == (3, 300, True, 2)
    assert (seen.suspended, seen.bypass, seen.releases_on_timeout, seen.managed_elsewhere) == (False,) * 4


def test_a_jobset_with_the_annotation_is_a_gang_on_clusters_without_the_field() -> None:
    text = '{"timeoutAfterSeconds": 60, "targetReplicatedJobs": ["workers"]}'
    seen = read_jobset(jobset(notes={"jobset-gate.dev/group-scheduling-config": text}, groupSchedulingConfig=None))
    assert seen.config == Config(timeout=60, targets=("workers",))


@pytest.mark.parametrize("notes", [None, {}, {"jobset-gate.dev/bypass": "true"}])
def test_a_jobset_without_a_config_is_none_of_our_business(notes: Json | None) -> None:
    assert wire_objects.read_jobset(jobset(notes=notes, groupSchedulingConfig=None)) is None


READ: dict[str, tuple[Json, dict[str, Any]]] = {
    "an empty config: a gang of all that waits for ever": (jobset(groupSchedulingConfig={}), {"config": Config()}),
    "the users' wishes": (
        jobset(notes={"jobset-gate.dev/bypass": "true", "jobset-gate.dev/on-timeout": "Release"}),
        {"bypass": True, "releases_on_timeout": True},
    ),
    **{
        f"undocumented words: {bypass} and {late}": (
            jobset(notes={"jobset-gate.dev/bypass": bypass, "jobset-gate.dev/on-timeout": late}),
            {"bypass": False, "releases_on_timeout": False},
        )
        for bypass, late in (("True", "release"), ("", ""))
    },
    **{
        f"a status: {status}": (jobset() | {"status": status}, {"finished": finished, "failed": failed})
        for status, finished, failed in (
            ({"terminalState": "Completed"}, True, False),
            ({"terminalState": "Failed"}, True, True),
            ({"conditions": [{"type": "Failed", "status": "True"}]}, True, True),
            ({"conditions": [{"type": "Completed", "status": "True"}]}, True, False),
            ({"conditions": [{"type": "Suspended", "status": "True"}]}, False, False),
            ({"conditions": [{"type": "Failed", "status": "False"}]}, False, False),
            ({"terminalState": ""}, False, False),
            ({}, False, False),
        )
    },
    **{
        f"managed by {manager}": (jobset(managedBy=manager), {"managed_elsewhere": elsewhere})
        for manager, elsewhere in (
            (None, False),
            ("", False),
            ("jobset.sigs.k8s.io/jobset-controller", False),
            ("kueue.x-k8s.io/multikueue", True),
        )
    },
    "the token at the end of the barriers' URL": (
        jobset(replicated("plain", init=("fetch",)), replicated(env=[STREAM])),
        {"token": "t0k-en_22"},
    ),
    **{
        f"no token: {number}": (jobset(job), {"token": ""})
        for number, job in enumerate(
            (
                replicated(env=None),
                replicated(env=[{"name": STREAM["name"]}]),
                replicated(env=[{"name": STREAM["name"], "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}]),
                replicated(env=[{"name": STREAM["name"], "value": ""}]),
                replicated(env=[STREAM | {"name": "ANOTHER"}]),
                replicated(init=("fetch",), env=[STREAM]),
            )
        )
    },
}


@pytest.mark.parametrize(("body", "expected"), READ.values(), ids=READ)
def test_of_a_jobset_is_read(body: Json, expected: dict[str, Any]) -> None:
    seen = read_jobset(body)
    assert {name: getattr(seen, name) for name in expected} == expected


@pytest.mark.parametrize("broken", [{"timeoutAfterSeconds": 0}, [], {"targetReplicatedJobs": 7}])
def test_a_config_that_came_in_unchecked_is_a_gang_with_a_problem_not_a_crash(broken: Any) -> None:
    assert read_jobset(jobset(groupSchedulingConfig=broken)).config_problem


def test_what_the_jobset_controller_said_at_the_end_is_one_short_harmless_line() -> None:
    reported = {"type": "Failed", "status": "True", "message": "job\x1b[2J \n failed" + "x" * 5000}
    seen = read_jobset(jobset() | {"status": {"conditions": [reported]}})
    assert seen.finished_message.startswith("job^[[2J failedxx")
    assert len(seen.finished_message) == MAX_MESSAGE


def test_restarts_suspension_deletion_and_our_condition_are_read() -> None:
    body = jobset(suspend=True)
    body["metadata"]["deletionTimestamp"] = "2026-08-01T11:00:00Z"
    ours = {"type": "GroupStarted", "status": "False", "reason": "WaitingForPods", "message": "suspended"}
    since = {"lastTransitionTime": "2026-08-01T10:00:00Z"}
    body["status"] = {"restarts": 4, "conditions": [{"type": "Suspended", "status": "True"}, ours | since]}
    seen = read_jobset(body)
    assert (seen.attempt, seen.suspended, seen.deleting) == (4, True, True)
    assert seen.condition is not None
    assert (seen.condition.reason, seen.condition.since) == ("WaitingForPods", "2026-08-01T10:00:00Z")


@pytest.mark.parametrize("bare", [{"name": "w", "template": {"spec": {"template": {"spec": {}}}}}, {"name": "w"}])
def test_numbers_left_out_are_what_the_api_means_by_it(bare: Json) -> None:
    (workers,) = read_jobset(jobset(bare)).replicated_jobs
    assert (workers.replicas, workers.parallelism, workers.completions, workers.expected) == (1, 1, None, 1)
    assert (workers.indexed, workers.has_barrier, workers.epoch) == (True, False, 0)


def test_a_barrier_anywhere_among_the_init_containers_is_one_and_nonindexed_jobs_differ() -> None:
    jobs = (
        replicated(init=("fetch", BARRIER)),
        replicated("b", init=("fetch",), completionMode=None),
        replicated("c", completionMode="NonIndexed"),
    )
    found = [(one.has_barrier, one.indexed) for one in read_jobset(jobset(*jobs)).replicated_jobs]
    assert found == [(True, True), (False, True), (True, False)]


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
    verdict = "release jobset-uid 1 3 AllPodsStarted\nall 300 pods started\n"
    seen = read_config_map(config_map({"verdict": verdict, "waiting-since": "jobset-uid 1 3 2026-08-01T10:00:00.000Z"}))
    assert (seen.gang, seen.workload_uid, seen.resource_version, seen.canonical) == ("train", "jobset-uid", "42", True)
    assert seen.verdict is not None
    assert (seen.verdict.kind, seen.verdict.message) == (VerdictKind.RELEASE, "all 300 pods started")
    assert present(seen.waiting_since).at == TEN_O_CLOCK


@pytest.mark.parametrize("data", [None, {}])
def test_an_empty_gate_is_tidy_and_closed(data: Json | None) -> None:
    seen = read_config_map(config_map(data))
    assert (seen.verdict, seen.waiting_since, seen.canonical) == (None, None, True)


@pytest.mark.parametrize(
    "body",
    [
        config_map({"verdict": "open sesame"}),
        config_map({"verdict": ""}),
        config_map({"more": "x"}),
        config_map({"verdict": "release jobset-uid 1 3 AllPodsStarted"}),
        config_map({}, ownerReferences=None),
        config_map({}, annotations=None),
    ],
)
def test_a_gate_that_a_user_edited_is_not_tidy_and_without_its_annotation_of_no_life(body: Json) -> None:
    seen = read_config_map(body)
    assert (seen.canonical, seen.workload_uid) == (False, "jobset-uid" if body["metadata"]["annotations"] else "")


@pytest.mark.parametrize("body", [config_map({}, labels={"app": "x"}), config_map({}, name="something-else")])
def test_a_configmap_without_our_label_or_name_is_not_ours(body: Json) -> None:
    assert wire_objects.read_config_map(body) is None
