"""`validate` and `render` of LeaderWorkerSets: offline, the same answer as the webhook's."""

from typing import Any

import pytest
import yaml

from jobset_gate import names
from tests.fakes.cli_runner import RunCli
from tests.fakes.jobsets import Json

CONFIG = {names.CONFIG: '{"timeoutAfterSeconds": 300}'}
GROUP = "spec.leaderWorkerTemplate"


def template(notes: Json | None = None, labels: Json | None = None, **spec: Any) -> Json:
    meta = {"labels": {"app": "vllm"} | (labels or {}), "annotations": notes or {}}
    return {"metadata": meta, "spec": {"containers": [{"name": "main", "image": "vllm:1"}]} | spec}


def made(notes: Json | None = CONFIG, spec: Json | None = None, size: int = 3, **templates: Json) -> Json:
    group = {"size": size, "workerTemplate": template()} | templates
    meta = {"name": "vllm", "annotations": notes or {}}
    body = {"replicas": 2, "leaderWorkerTemplate": group} | (spec or {})
    return {"apiVersion": "leaderworkerset.x-k8s.io/v1", "kind": "LeaderWorkerSet", "metadata": meta, "spec": body}


def test_a_good_one_says_how_many_wait_for_each_other(on: RunCli) -> None:
    ran = on("validate", made(), "--require-gate", "--strict")
    assert (ran.code, "ok: 3 pods of each of 2 groups wait for each other, at most 300s" in ran.out) == (0, True), ran


def test_without_config_it_is_no_gang(on: RunCli) -> None:
    assert on("validate", made(None)).code == 0
    assert on("validate", made(None), "--require-gate").code == 1


def test_render_prints_templates_with_our_metadata_and_a_pod_of_each(on: RunCli) -> None:
    ran = on("render", made(leaderTemplate=template()))
    assert ran.code == 0, ran.err
    lws, leader, worker = yaml.safe_load_all(ran.out)
    for key in ("leaderTemplate", "workerTemplate"):
        meta = lws["spec"]["leaderWorkerTemplate"][key]["metadata"]
        assert (meta["labels"], meta["annotations"]) == ({"app": "vllm", names.GATED: "lws"}, CONFIG)
        assert "initContainers" not in lws["spec"]["leaderWorkerTemplate"][key]["spec"]
    assert [it["metadata"]["name"] for it in (leader, worker)] == ["vllm-0", "vllm-0-1"]
    for pod in (leader, worker):
        assert [it["name"] for it in pod["spec"]["initContainers"]][-1] == names.BARRIER_CONTAINER
    again = on("validate", lws, "--strict")
    assert (again.code, again.err) == (0, "")


@pytest.mark.parametrize(
    ("given", "path", "message"),
    [
        (made(spec={"startupPolicy": "LeaderReady"}), "spec.startupPolicy", "the group could never start"),
        (made(workerTemplate=template(os={"name": "windows"})), f"{GROUP}.workerTemplate.spec.os.name", "windows"),
        (made({names.CONFIG: "5m"}), f"metadata.annotations[{names.CONFIG}]", "must be"),
        (made(None, workerTemplate=template(CONFIG)), f"{GROUP}.workerTemplate.metadata.annotations", "has no effect"),
        (made({names.BYPASS: "true"} | CONFIG, workerTemplate=template({names.BYPASS: "true"})), GROUP, "no effect"),
        (made(spec={names.CONFIG_FIELD: {}}), f"spec.{names.CONFIG_FIELD}", "is the annotation"),
        (
            made(workerTemplate=template(labels={names.START_GROUP: "ring"})),
            f"{GROUP}.workerTemplate.metadata.labels[{names.START_GROUP}]",
            "cannot be a start group",
        ),
    ],
)
def test_what_is_refused_or_has_no_effect_is_named_once_with_its_path(
    given: Json, path: str, message: str, on: RunCli
) -> None:
    ran = on("validate", given)
    found = [line for line in ran.out.splitlines() if path in line and message in line]
    assert (ran.code, len(found)) == (1, 1), ran.out
