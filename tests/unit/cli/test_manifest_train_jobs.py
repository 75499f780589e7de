"""A TrainJob in `validate` and `render`: its config is checked where Trainer copies it to the JobSet."""

import json
from typing import Any

import pytest

from jobset_gate import names
from tests.fakes.cli_runner import RunCli
from tests.repo.files import ROOT

EXAMPLE = (ROOT / "examples" / "trainer" / "trainjob.yaml").read_text()
PLACE = "spec.runtimePatches[].trainingRuntimeSpec.template.metadata.annotations"
HINT = f"the config of a TrainJob is the annotation {names.CONFIG} in {PLACE}"


def train_job(spec: Any = None, annotations: Any = None) -> str:
    meta = {"name": "a", "annotations": annotations or {}}
    return json.dumps(
        {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "metadata": meta, "spec": spec or {}}
    )


def patched(annotations: Any) -> Any:
    spec = {"template": {"metadata": {"annotations": annotations}}}
    return {"runtimePatches": [{"manager": "a.b/c"}, {"manager": "a.b/d", "trainingRuntimeSpec": spec}]}


def test_the_example_is_gated(run: RunCli) -> None:
    ran = run("validate", "--require-gate", "--strict", "-", stdin=EXAMPLE)
    config = '{"timeoutAfterSeconds":900,"targetReplicatedJobs":["node"]}'
    assert (ran.code, ran.out) == (
        0,
        f"stdin:2:1: TrainJob pytorch (document 1): ok: its JobSet gets the config {config}\n",
    )


def test_one_without_a_gate_says_where_the_config_belongs(run: RunCli) -> None:
    ran = run("validate", "-", stdin=train_job())
    assert (ran.code, f"ok: no gate asked for; {HINT}" in ran.out) == (0, True)
    assert run("validate", "--require-gate", "-", stdin=train_job()).code == 1


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (train_job(annotations={names.CONFIG: "{}"}), f"metadata.annotations[{names.CONFIG}]: "),
        (train_job(annotations={names.BYPASS: "true"}), f"metadata.annotations[{names.BYPASS}]: "),
        (train_job({"labels": {names.CONFIG: "{}"}}), f"spec.labels[{names.CONFIG}]: "),
        (train_job({names.CONFIG_FIELD: {}}), f"spec.{names.CONFIG_FIELD}: "),
        (train_job({"annotations": {names.CONFIG_FIELD: "{}"}}), f"spec.annotations.{names.CONFIG_FIELD}: "),
    ],
)
def test_what_reaches_no_jobset_is_an_error_with_the_right_place(run: RunCli, text: str, words: str) -> None:
    ran = run("validate", "-", stdin=text)
    assert (ran.code, ran.out.count("\n")) == (1, 1)
    assert words in ran.out
    assert ": has no effect here: " in ran.out
    assert PLACE in ran.out


@pytest.mark.parametrize(
    ("spec", "path"),
    [
        (
            patched({names.CONFIG: '{"timeoutAfterSeconds": "5m"}'}),
            "spec.runtimePatches[1].trainingRuntimeSpec.template.metadata.annotations",
        ),
        ({"annotations": {names.CONFIG: '{"timeoutAfterSeconds": "5m"}'}}, "spec.annotations"),
    ],
    ids=["Trainer 2.2", "Trainer 2.0"],
)
def test_a_config_that_reaches_the_jobset_is_checked(run: RunCli, spec: Any, path: str) -> None:
    ran = run("validate", "-", stdin=train_job(spec))
    assert ran.code == 1
    assert f'{path}[{names.CONFIG}].timeoutAfterSeconds: "5m": must be an integer' in ran.out
    assert ran.out.endswith("write 300 (seconds)\n")


@pytest.mark.parametrize("spec", [None, [], "x", {"runtimePatches": {}}, {"runtimePatches": [None, {"a": 1}, 3]}])
def test_one_of_any_shape_is_no_crash(run: RunCli, spec: Any) -> None:
    assert "no gate asked for" in run("validate", "-", stdin=train_job(spec)).out


def test_render_prints_it_as_it_is_and_says_why(run: RunCli) -> None:
    ran = run("render", "-o", "json", "-", stdin=train_job())
    assert (ran.code, json.loads(ran.out)) == (0, json.loads(train_job()))
    assert f"warning: a TrainJob is printed as it is, since Trainer makes its JobSet in the cluster; {HINT}" in ran.err
