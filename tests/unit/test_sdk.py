"""A gate from Python: on dicts and on models, with errors that name the field; the examples of its page run."""

import copy
import re
import sys
from types import ModuleType
from typing import Any

import pytest
from kubernetes_asyncio.client import V1Job, V1JobSpec, V1PodTemplateSpec
from pydantic import BaseModel, ConfigDict, Field
from pydantic.alias_generators import to_camel

from jobset_gate import gate, gate_annotations, names
from jobset_gate.injection.validate import field_errors
from jobset_gate.sources.objects import config_of
from tests.fakes import jobsets
from tests.fakes.jobs import job
from tests.fakes.jobsets import Json
from tests.fakes.present import present
from tests.repo.documents import blocks
from tests.repo.files import ROOT

PAGE = (ROOT / "docs/howto/from-python.md").read_text()


def jobset(*jobs: str, **annotations: str) -> Json:
    """One without a gate."""
    return jobsets.jobset(*map(jobsets.replicated, jobs), config=False, notes=annotations)


class SdkModel(BaseModel):
    """As the models of JobSet's SDK are."""

    model_config = ConfigDict(alias_generator=to_camel, populate_by_name=True, validate_assignment=True)

    def to_dict(self) -> Json:
        return self.model_dump(by_alias=True, exclude_none=True)


class Metadata(SdkModel):
    name: str = "gang"
    namespace: str = "default"
    annotations: dict[str, str] | None = None


class ReplicatedJob(SdkModel):
    name: str = "workers"
    replicas: int = 3
    template: Json = Field(default_factory=lambda: jobsets.replicated()["template"])


class Spec(SdkModel):
    replicated_jobs: list[ReplicatedJob] = Field(default_factory=lambda: [ReplicatedJob()])


class Model(SdkModel):
    api_version: str | None = None
    kind: str | None = None
    metadata: Metadata | None = Field(default_factory=Metadata)
    spec: Spec = Field(default_factory=Spec)


def test_a_dict_gets_a_gate_that_the_webhook_takes_and_stays_as_it_was() -> None:
    before = jobset("driver", "workers", note="x")
    kept = copy.deepcopy(before)
    made = gate(before, timeout=300, targets=["workers"], on_timeout="Release", prefetch_images=True)
    assert before == kept
    assert field_errors(made) == []
    config = present(config_of(made).config)
    assert (config.timeout, config.targets) == (300, ("workers",))
    assert made["metadata"]["annotations"] == {
        "note": "x",
        names.CONFIG: '{"timeoutAfterSeconds":300,"targetReplicatedJobs":["workers"]}',
        names.ON_TIMEOUT: "Release",
        names.PREFETCH_IMAGES: "true",
    }


def test_a_model_gets_the_same_annotations() -> None:
    before = Model()
    made = gate(before, timeout=300, targets=["workers"], barrier_image="mine")
    assert present(made.metadata).annotations == gate_annotations(
        timeout=300, targets=["workers"], barrier_image="mine"
    )
    assert before == Model()


def test_a_gate_without_arguments_waits_for_all_without_a_limit() -> None:
    assert gate(jobset())["metadata"]["annotations"] == {names.CONFIG: "{}"}
    bare: dict[str, Any] = {"spec": {}}
    assert gate(bare)["metadata"]["annotations"] == {names.CONFIG: "{}"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"timeout": 0}, "groupSchedulingConfig.timeoutAfterSeconds: 0: must be an integer from 1 to 2147483647"),
        ({"targets": "workers"}, 'groupSchedulingConfig.targetReplicatedJobs: "workers": must be a list'),
        ({"targets": ["worker"]}, 'targets[0]: "worker": no replicatedJob has this name; there are: workers'),
        ({"on_timeout": "fail"}, 'on_timeout: "fail": must be Fail or Release'),
    ],
)
@pytest.mark.parametrize("made", [jobset(), Model()], ids=["dict", "model"])
def test_a_wrong_argument_is_named_with_its_value(made: Any, arguments: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=re.escape(words)):
        gate(made, **arguments)


def test_a_jobset_that_has_another_gate_is_refused_and_the_same_one_is_not() -> None:
    once = gate(jobset(), timeout=300)
    assert gate(once, timeout=300) == once
    with pytest.raises(ValueError, match="has another gate already"):
        gate(once, timeout=301)
    with_field = jobset()
    with_field["spec"][names.CONFIG_FIELD] = {}
    with pytest.raises(ValueError, match="has a gate already"):
        gate(with_field)
    with pytest.raises(ValueError, match="without metadata"):
        gate(Model(metadata=None))


def test_a_job_gets_a_gate_that_the_webhook_takes() -> None:
    made = gate(job(config=False), timeout=300, on_timeout="Release")
    assert field_errors(made) == []
    assert made["metadata"]["annotations"] == gate_annotations(timeout=300, on_timeout="Release")
    config = present(config_of(made).config)
    assert config.timeout == 300
    template: dict[str, Any] = {"spec": job()["spec"]}
    assert gate(template)["metadata"]["annotations"] == {names.CONFIG: "{}"}
    assert "metadata" not in template


def test_a_job_has_no_targets_and_needs_metadata_as_a_model() -> None:
    with pytest.raises(ValueError, match=re.escape('targets: ["a"]: a Job has no replicatedJobs: leave them out')):
        gate(job(config=False), targets=["a"])
    with pytest.raises(ValueError, match="this Job has another gate already"):
        gate(job(), timeout=1)
    with pytest.raises(ValueError, match="a Job without metadata has no place for a gate"):
        gate(V1Job(spec=V1JobSpec(template=V1PodTemplateSpec())))


def test_the_example_of_the_page_for_the_sdk_makes_a_jobset_that_the_webhook_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    models = ModuleType("jobset.models")
    models.__dict__["JobsetV1alpha2JobSet"] = Model
    monkeypatch.setitem(sys.modules, "jobset", ModuleType("jobset"))
    monkeypatch.setitem(sys.modules, "jobset.models", models)
    scope: dict[str, Any] = {"metadata": Metadata(), "spec": Spec()}
    exec(next(it for it in blocks(PAGE, "python") if "jobset.models" in it), scope)  # noqa: S102 - the page's own lines
    assert field_errors(scope["body"]) == []
    assert scope["body"] == gate(jobset(), timeout=600, targets=["workers"])


def test_the_examples_of_the_page_are_python_and_the_one_for_a_trainjob_runs() -> None:
    examples = blocks(PAGE, "python")
    for example in examples:
        compile(example, "from-python.md", "exec")
    scope: dict[str, Any] = {"trainjob": {"spec": {}}}
    exec(next(it for it in examples if "trainjob[" in it), scope)  # noqa: S102 - the page's own lines
    (patch,) = scope["trainjob"]["spec"]["runtimePatches"]
    handed_on = patch["trainingRuntimeSpec"]["template"]["metadata"]["annotations"]
    made = jobset("dataset-initializer", "node")
    made["metadata"]["annotations"] = handed_on
    assert field_errors(made) == []
