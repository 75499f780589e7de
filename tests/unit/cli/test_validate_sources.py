"""`validate` and `render` of gangs of other sources than JobSets: offline, the same answer as the webhook's."""

import json
from typing import Any

import pytest
import yaml

from jobset_gate import names
from tests.fakes import jobs
from tests.fakes.cli_runner import RunCli
from tests.fakes.jobsets import Json, changed, without
from tests.fakes.leader_worker_sets import leader_worker_set, template
from tests.repo.files import ROOT

CONFIG = {names.CONFIG: '{"timeoutAfterSeconds": 300}'}
AT_TOP = f"metadata.annotations[{names.CONFIG}]"
GROUP = "spec.leaderWorkerTemplate"


def cron_job(**more: Any) -> Json:
    """One whose Jobs are gangs of four pods."""
    job = jobs.job(**more)
    template = {"metadata": {"annotations": job["metadata"]["annotations"]}, "spec": job["spec"]}
    spec = {"schedule": "0 * * * *", "jobTemplate": template}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hourly"}, "spec": spec}


TEMPLATES = {
    "StatefulSet": ("apps/v1", ("template",)),
    "Job": ("batch/v1", ("template",)),
    "CronJob": ("batch/v1", ("jobTemplate", "spec", "template")),
    "PyTorchJob": ("kubeflow.org/v1", ("pytorchReplicaSpecs", "Worker", "template")),
    "MPIJob": ("kubeflow.org/v2beta1", ("mpiReplicaSpecs", "Worker", "template")),
    "Deployment": ("apps/v1", ("template",)),
    "ReplicaSet": ("apps/v1", ("template",)),
    "DaemonSet": ("apps/v1", ("template",)),
}
PARALLEL: Json = {"podManagementPolicy": "Parallel", "replicas": 8}


def starting(kind: str, size: str = "8", *, notes: Json = CONFIG, pod: Json | None = None, **spec: Any) -> Json:
    """An object of that kind whose pods are the start group `ring`."""
    version, path = TEMPLATES[kind]
    meta = {"labels": {names.START_GROUP: "ring"}, "annotations": {names.START_SIZE: size} | notes}
    inner: Json = template(meta, restartPolicy="Never", **(pod or {}))
    for key in reversed(path):
        inner = {key: inner}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "ring"}, "spec": inner | spec}


def train_job(spec: Any = None, annotations: Any = None) -> Json:
    meta = {"name": "a", "annotations": annotations or {}}
    return {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": meta, "spec": spec or {}}


def patched(annotations: Any) -> Json:
    """What Trainer 2.2 and later copy to the JobSet."""
    spec = {"template": {"metadata": {"annotations": annotations}}}
    return train_job({"runtimePatches": [{"manager": "a.b/c"}, {"manager": "a.b/d", "trainingRuntimeSpec": spec}]})


GROUPS = leader_worker_set(notes=CONFIG)
EXAMPLE = yaml.safe_load((ROOT / "examples" / "trainer" / "trainjob.yaml").read_text())
GOOD = [
    (jobs.job(), "4 pods wait for each other, at most 300s"),
    (cron_job(), "4 pods wait for each other, at most 300s"),
    (GROUPS, "3 pods of each of 2 groups wait for each other, at most 300s"),
    (starting("StatefulSet", **PARALLEL), "8 pods of start group ring wait for each other, at most 300s"),
    *(
        (starting(it), "8 pods of start group ring wait for each other, at most 300s")
        for it in ("Job", "CronJob", "PyTorchJob", "MPIJob")
    ),
    (EXAMPLE, 'its JobSet gets the config {"timeoutAfterSeconds":900,"targetReplicatedJobs":["node"]}'),
]


@pytest.mark.parametrize(("given", "message"), GOOD)
def test_a_good_one_says_how_many_wait_for_each_other(on: RunCli, given: Json, message: str) -> None:
    ran = on("validate", given, "--require-gate", "--strict")
    assert (ran.code, ran.out.count("\n"), f"ok: {message}\n" in ran.out) == (0, 1, True), ran


PLACE = "spec.runtimePatches[].trainingRuntimeSpec.template.metadata.annotations"
HINT = f"the config of a TrainJob is the annotation {names.CONFIG} in {PLACE}"
SHAPES: list[Any] = [[], "x", {"runtimePatches": {}}, {"runtimePatches": [None, {"a": 1}, 3]}]
UNGATED = [
    (without(jobs.job(config=False), "spec", "completionMode"), ""),
    (leader_worker_set(), ""),
    *((train_job(it), f"ok: no gate asked for; {HINT}") for it in ({}, *SHAPES)),
]


@pytest.mark.parametrize(("given", "message"), UNGATED)
def test_one_that_asks_for_no_gate_is_left_alone(on: RunCli, given: Json, message: str) -> None:
    ran = on("validate", given)
    assert (ran.code, message in ran.out) == (0, True)
    assert on("validate", given, "--require-gate").code == 1


WINDOWS: Json = {"os": {"name": "windows"}}
NO_BARRIER = "only JobSets, Jobs and LeaderWorkerSets have a start barrier, and pods with the label of a start group"
REFUSED: list[tuple[Json, str, str]] = [
    (jobs.job(spec={"paralelism": 3}), "spec.paralelism", "unknown field: did you mean parallelism?"),
    (jobs.job(spec={"completions": "4"}), "spec.completions", "must be an integer: take the quotes away"),
    (cron_job(spec={"parallelism": 3}), "spec.jobTemplate.spec.parallelism", "1 of the 4 indexes would start later"),
    (leader_worker_set(notes=CONFIG, startupPolicy="LeaderReady"), "spec.startupPolicy", "the group could never start"),
    (patched({names.CONFIG: '{"timeoutAfterSeconds": "5m"}'}), PLACE.replace("[]", "[1]"), "write 300 (seconds)"),
    (train_job({"annotations": {names.CONFIG: '{"timeoutAfterSeconds": "5m"}'}}), "spec.annotations", "write 300"),
]
MISPLACED: list[tuple[Json, str, str]] = [
    (
        changed(cron_job(config=False), "{}", "metadata", "annotations", names.CONFIG),
        AT_TOP,
        "put it into spec.jobTemplate.metadata.annotations",
    ),
    (
        changed(jobs.job(config=False), "{}", "spec", "template", "metadata", "annotations", names.CONFIG),
        f"spec.template.{AT_TOP}",
        "it is read in metadata.annotations alone",
    ),
    (changed(GROUPS, {}, "spec", names.CONFIG_FIELD), f"spec.{names.CONFIG_FIELD}", "is the annotation"),
    (leader_worker_set(worker=template({"annotations": CONFIG})), f"{GROUP}.workerTemplate.{AT_TOP}", ""),
    (without(starting("StatefulSet"), "spec", "template", "metadata", "labels"), f"spec.template.{AT_TOP}", NO_BARRIER),
    (train_job(annotations=CONFIG), AT_TOP, PLACE),
    (train_job({names.CONFIG_FIELD: {}}), f"spec.{names.CONFIG_FIELD}", PLACE),
    (train_job({"annotations": {names.CONFIG_FIELD: "{}"}}), f"spec.annotations.{names.CONFIG_FIELD}", PLACE),
]


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [*REFUSED, *((given, path, f"has no effect here: |{words}") for given, path, words in MISPLACED)],
)
def test_what_is_wrong_or_has_no_effect_is_named_once_with_its_path(
    given: Json, path: str, message: str, on: RunCli
) -> None:
    ran = on("validate", given)
    found = [line for line in ran.out.splitlines() if path in line and all(it in line for it in message.split("|"))]
    assert (ran.code, len(found), len(ran.out.splitlines())) == (1, 1, 1), ran.out


@pytest.mark.parametrize("kind", ["Job", "PyTorchJob", "CronJob"])
def test_what_the_webhook_refuses_is_refused_with_the_path_in_the_file(kind: str, on: RunCli) -> None:
    for given, path, message in (
        (starting(kind, size="0"), f"metadata.annotations[{names.START_SIZE}]", "must be a number from 1 to 10000"),
        (starting(kind, notes={names.CONFIG: "5m"}), AT_TOP, "must be"),
        (starting(kind, pod=WINDOWS), "spec.os.name", "windows"),
    ):
        ran = on("validate", given)
        place = ".".join(("spec", *TEMPLATES[kind][1], path))
        assert (ran.code, f"{place}: " in ran.out, message in ran.out) == (1, True, True), ran


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        (starting("StatefulSet", replicas=8), "spec.podManagementPolicy", "one by one, 1 of 8 can be there"),
        (starting("StatefulSet", **PARALLEL | {"replicas": 3}), "spec.replicas", "has 3 replicas, 3 of 8 can be there"),
        *(
            (starting(it), "kind", "nothing distinguishes one run from the next")
            for it in ("Deployment", "ReplicaSet", "DaemonSet")
        ),
    ],
)
def test_a_controller_that_never_has_enough_pods_or_no_runs_is_refused(
    given: Json, path: str, message: str, on: RunCli
) -> None:
    for form in ("text", "github", "sarif"):
        ran = on("validate", given, "-o", form)
        assert (ran.code, path in ran.out, message in ran.out) == (1, True, True), ran


# --- What is rendered ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (UNGATED[0][0], ""),
        (cron_job(), "each of its Jobs gets its barrier when it is created"),
        (train_job(), f"printed as it is, since Trainer makes its JobSet in the cluster; {HINT}"),
    ],
)
def test_what_gets_no_barrier_here_is_printed_as_it_is(given: Json, why: str, on: RunCli) -> None:
    ran = on("render", given)
    assert (ran.code, yaml.safe_load(ran.out), why in ran.err) == (0, given, True)


@pytest.mark.parametrize(
    ("given", "path"),
    [(cron_job(spec={"parallelism": 3}), "spec.jobTemplate.spec.parallelism"), (starting("Deployment"), "kind: ")],
)
def test_what_is_refused_is_not_printed(given: Json, path: str, on: RunCli) -> None:
    ran = on("render", given)
    assert (ran.code, ran.out, path in ran.err) == (1, "", True)


def test_a_job_is_printed_with_its_barrier(on: RunCli) -> None:
    made = json.loads(on("render", jobs.job(), "-o", "json").out)
    (barrier,) = made["spec"]["template"]["spec"]["initContainers"]
    assert barrier["name"] == names.BARRIER_CONTAINER
    for marked in (made, made["spec"]["template"]):
        assert marked["metadata"]["labels"][names.GATED] == names.GATED_JOB


@pytest.mark.parametrize(
    ("given", "pods"),
    [
        (leader_worker_set(notes=CONFIG, leader=template()), ["vllm-0", "vllm-0-1"]),
        (starting("StatefulSet", **PARALLEL), ["ring-xxxxx"]),
    ],
)
def test_pods_are_printed_behind_the_object_that_makes_them(given: Json, pods: list[str], on: RunCli) -> None:
    made, *behind = yaml.safe_load_all(on("render", given).out)
    assert [it["metadata"]["name"] for it in behind] == pods
    for pod in behind:
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "StatefulSet"
        assert pod["spec"]["initContainers"][-1]["name"] == names.BARRIER_CONTAINER
        assert names.TOKEN in pod["metadata"]["annotations"]
    if given["kind"] == "StatefulSet":
        assert made == given
        return
    for part in ("leaderTemplate", "workerTemplate"):
        marks = {"labels": {names.GATED: "lws"}, "annotations": CONFIG}
        assert made["spec"]["leaderWorkerTemplate"][part] == template(marks)
    assert on("validate", made, "--strict").code == 0
