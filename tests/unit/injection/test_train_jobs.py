"""The JobSet that Kubeflow Trainer makes of the example gets its gate; what its runtimes depend on stays possible."""

import copy

import pytest
import yaml

from jobset_gate import gate_annotations, names
from jobset_gate.injection.validate import field_errors
from jobset_gate.sources.objects import config_of
from tests.fakes.jobsets import created
from tests.fakes.train_jobs import MPI, TORCH, TUNE, Json, jobset_of
from tests.repo.files import ROOT

EXAMPLE: Json = yaml.safe_load((ROOT / "examples/trainer/trainjob.yaml").read_text())
EVERYONE = gate_annotations(timeout=900)


def gated(made: Json) -> list[str]:
    """The replicatedJobs whose pods get a barrier."""
    jobs = created(made)["spec"]["replicatedJobs"]
    return [job["name"] for job in jobs if names.BARRIER_CONTAINER in str(job["template"])]


@pytest.mark.parametrize("template", [TORCH, TUNE, MPI], ids=["torch", "torchtune", "mpi"])
def test_the_nodes_of_the_example_wait_for_each_other_whatever_the_runtime_runs_before_or_after_them(
    template: Json,
) -> None:
    made = jobset_of(EXAMPLE, template)
    assert field_errors(made) == []
    assert gated(made) == ["node"]
    parsed = config_of(made).config
    assert parsed is not None
    assert (parsed.timeout, parsed.targets) == (900, ("node",))


@pytest.mark.parametrize("template", [TUNE, MPI], ids=["torchtune", "mpi"])
def test_without_targets_what_depends_on_the_nodes_or_they_on_is_refused_with_the_chain(template: Json) -> None:
    whole = copy.deepcopy(EXAMPLE)
    whole["spec"]["runtimePatches"][0]["trainingRuntimeSpec"]["template"]["metadata"]["annotations"] = EVERYONE
    (error, *_) = field_errors(jobset_of(whole, template))
    assert "dependsOn" in str(error)
