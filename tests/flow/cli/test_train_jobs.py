"""`trainjob/NAME`: the gang of the JobSet that Kubeflow Trainer has made of it."""

import time

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBSETS
from tests.fakes.cli_runner import CliShell
from tests.fakes.stored_gang import StoredJobSet


async def make_train_job(stored: StoredJobSet, **changes: object) -> None:
    """The JobSet `train` as Trainer has it, changed."""
    await stored.jobset()
    owner = {"apiVersion": "trainer.kubeflow.org/v1alpha1", "kind": "TrainJob", "name": "train", "uid": "t-1"}
    meta = {"metadata": {"ownerReferences": [owner | {"controller": True} | changes]}}
    await stored.client.patch(JOBSETS, "train", stored.namespace, body=meta, patch=PatchType.MERGE)


@pytest.mark.parametrize("line", [("why",), ("describe",), ("timeline",), ("wait", "--timeout=0"), ("watch",)])
async def test_each_command_takes_a_train_job(stored: StoredJobSet, cli: CliShell, line: tuple[str, ...]) -> None:
    await make_train_job(stored)
    await stored.config_map(VerdictKind.RELEASE, names.REASON_STARTED, "all 2 pods started", since=time.time() - 9)
    ran = await cli(*line, "trainjob/train")
    assert (ran.code, "train" in ran.out) == (0, True), ran


async def test_release_and_bypass_open_the_gate_of_its_jobset(stored: StoredJobSet, cli: CliShell) -> None:
    await make_train_job(stored)
    ran = await cli("release", "trainjob/train", "--dry-run=client")
    assert (ran.code, "jobset.jobset.x-k8s.io/train" in ran.out) == (0, True), ran
    ran = await cli("bypass", "trainjob/train", "--yes")
    assert ran.code == 0, ran
    found = await stored.client.get(JOBSETS, "train", stored.namespace)
    assert found["metadata"]["annotations"][names.BYPASS] == "true"


async def test_a_train_job_without_a_jobset_is_reported(stored: StoredJobSet, cli: CliShell) -> None:
    words = f"TrainJob later in namespace {stored.namespace} has no JobSet yet: Trainer makes one of its name"
    for command in ("why", "wait", "release"):
        ran = await cli(command, "trainjob/later")
        assert (ran.code, words in ran.err) == (1, True), command


@pytest.mark.parametrize(
    "changes", [{"controller": False}, {"kind": "Workflow"}, {"apiVersion": "x.dev/v1"}, {"name": "other"}]
)
async def test_a_jobset_that_no_train_job_of_that_name_controls_is_not_taken_for_its(
    stored: StoredJobSet, cli: CliShell, changes: dict[str, object]
) -> None:
    await make_train_job(stored, **changes)
    ran = await cli("why", "trainjob/train")
    assert (ran.code, "is of no TrainJob: say jobset/train" in ran.err) == (1, True), ran
