"""`validate` and `render` of objects whose pods are a start group: offline, the same answer as the webhook's."""

import json
from typing import Any

import pytest
import yaml

from jobset_gate import names
from tests.fakes.cli_runner import RunCli
from tests.fakes.jobsets import Json

KINDS = {
    "StatefulSet": ("apps/v1", ("template",)),
    "Job": ("batch/v1", ("template",)),
    "CronJob": ("batch/v1", ("jobTemplate", "spec", "template")),
    "PyTorchJob": ("kubeflow.org/v1", ("pytorchReplicaSpecs", "Worker", "template")),
    "MPIJob": ("kubeflow.org/v2beta1", ("mpiReplicaSpecs", "Worker", "template")),
    "Deployment": ("apps/v1", ("template",)),
    "ReplicaSet": ("apps/v1", ("template",)),
    "DaemonSet": ("apps/v1", ("template",)),
}


def made(
    kind: str, size: Any = "8", spec: Json | None = None, pod: Json | None = None, notes: Json | None = None
) -> Json:
    """An object of that kind whose pods are the start group `ring`."""
    version, path = KINDS[kind]
    meta = {"labels": {names.START_GROUP: "ring"}, "annotations": {names.START_SIZE: size} | (notes or {})}
    body: Json = {"restartPolicy": "Never", "containers": [{"name": "main", "image": "train:1"}]} | (pod or {})
    inner: Json = {"metadata": meta, "spec": body}
    for key in reversed(path):
        inner = {key: inner}
    return {"apiVersion": version, "kind": kind, "metadata": {"name": "ring"}, "spec": inner | (spec or {})}


def at(kind: str, path: str) -> str:
    """The path of a field of the pod in that object."""
    return ".".join(("spec", *KINDS[kind][1], path))


ENOUGH = {"replicas": 8, "podManagementPolicy": "Parallel"}
CONFIG = {names.CONFIG: '{"timeoutAfterSeconds": 300}'}


@pytest.mark.parametrize("kind", ["StatefulSet", "Job", "CronJob", "PyTorchJob", "MPIJob"])
def test_a_good_one_says_how_many_wait_for_each_other(kind: str, on: RunCli) -> None:
    given = made(kind, spec=ENOUGH if kind == "StatefulSet" else None, notes=CONFIG)
    ran = on("validate", given, "--require-gate", "--strict")
    assert (ran.code, "ok: 8 pods of start group ring wait for each other, at most 300s" in ran.out) == (0, True), ran


@pytest.mark.parametrize("kind", ["Job", "PyTorchJob", "CronJob"])
def test_what_the_webhook_refuses_is_refused_with_the_path_in_the_file(kind: str, on: RunCli) -> None:
    for given, path, message in (
        (made(kind, size="0"), f"metadata.annotations[{names.START_SIZE}]", "must be a number from 1 to 10000"),
        (made(kind, notes={names.CONFIG: "5m"}), f"metadata.annotations[{names.CONFIG}]", "must be"),
        (made(kind, pod={"os": {"name": "windows"}}), "spec.os.name", "windows"),
    ):
        ran = on("validate", given)
        assert (ran.code, f"{at(kind, path)}: " in ran.out, message in ran.out) == (1, True, True), ran


@pytest.mark.parametrize("kind", ["Deployment", "ReplicaSet", "DaemonSet"])
def test_pods_of_controllers_without_runs_are_refused(kind: str, on: RunCli) -> None:
    ran = on("validate", made(kind), "-o", "json")
    (found,) = json.loads(ran.out)["findings"]
    assert (ran.code, found["field"], "nothing distinguishes one run from the next" in found["message"]) == (
        1,
        "kind",
        True,
    )


@pytest.mark.parametrize(
    ("spec", "path", "message"),
    [
        ({"replicas": 8}, "spec.podManagementPolicy", "creates its pods one by one, 1 of 8 can be there"),
        ({**ENOUGH, "replicas": 3}, "spec.replicas", "has 3 replicas, 3 of 8 can be there"),
    ],
)
def test_a_stateful_set_that_never_has_enough_pods_is_refused(spec: Json, path: str, message: str, on: RunCli) -> None:
    for form in ("text", "github", "sarif"):
        ran = on("validate", made("StatefulSet", spec=spec), "-o", form)
        assert (ran.code, path in ran.out, message in ran.out) == (1, True, True), ran


def test_render_shows_a_pod_behind_the_object_as_it_came(on: RunCli) -> None:
    given = made("StatefulSet", spec=ENOUGH, notes=CONFIG)
    ran = on("render", given)
    assert ran.code == 0, ran
    same, pod = yaml.safe_load_all(ran.out)
    assert (same, pod["kind"], pod["metadata"]["ownerReferences"][0]["kind"]) == (given, "Pod", "StatefulSet")
    assert pod["spec"]["initContainers"][-1]["name"] == names.BARRIER_CONTAINER
    assert names.TOKEN in pod["metadata"]["annotations"]
    ran = on("render", made("Deployment"))
    assert (ran.code, ran.out, "kind: " in ran.err) == (1, "", True)


def test_a_config_without_the_label_is_still_misplaced(on: RunCli) -> None:
    given = made("StatefulSet", spec=ENOUGH, notes=CONFIG)
    del given["spec"]["template"]["metadata"]["labels"]
    ran = on("validate", given)
    assert (
        "only JobSets, Jobs and LeaderWorkerSets have a start barrier, and pods with the label of a start group"
        in ran.out
    )
