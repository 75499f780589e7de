"""`validate` and `render` of Jobs and CronJobs: offline, the same answer as the webhook's."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from jobset_gate import names
from tests.fakes import jobs
from tests.fakes.cli_runner import RunCli
from tests.fakes.jobsets import Json, changed, without

AT_TOP = f"metadata.annotations[{names.CONFIG}]"


def cron_job(**more: Any) -> Json:
    """One whose Jobs are gangs of four pods."""
    job = jobs.job(**more)
    template = {"metadata": {"annotations": job["metadata"]["annotations"]}, "spec": job["spec"]}
    spec = {"schedule": "0 * * * *", "jobTemplate": template}
    return {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "hourly"}, "spec": spec}


BUILDERS = pytest.mark.parametrize(
    ("build", "root"), [(jobs.job, ""), (cron_job, "spec.jobTemplate.")], ids=["Job", "CronJob"]
)


@BUILDERS
def test_a_good_one_says_how_many_wait_for_each_other(build: Callable[..., Json], root: str, on: RunCli) -> None:
    ran = on("validate", build(), "--require-gate", "--strict")
    assert (ran.code, "ok: 4 pods wait for each other, at most 300s" in ran.out) == (0, True), ran
    del root


@BUILDERS
def test_what_the_webhook_refuses_is_refused_with_the_path_in_the_file(
    build: Callable[..., Json], root: str, on: RunCli
) -> None:
    for spec, path, message in (
        ({"completionMode": "NonIndexed"}, "spec.completionMode", "a gang of a Job needs indexes"),
        ({"parallelism": 3}, "spec.parallelism", "1 of the 4 indexes would start later"),
        ({"manualSelector": True}, "spec.manualSelector", "leave it out"),
        ({"paralelism": 3}, "spec.paralelism", "unknown field: did you mean parallelism?"),
        ({"completions": "4"}, "spec.completions", "must be an integer: take the quotes away"),
    ):
        ran = on("validate", build(spec=spec))
        assert (ran.code, f"{root}{path}: " in ran.out, message in ran.out) == (1, True, True), ran
    ran = on("validate", build(config={"targetReplicatedJobs": ["workers"]}))
    assert (ran.code, f"{root}{AT_TOP}" in ran.out, "targetReplicatedJobs" in ran.out) == (1, True, True), ran


def test_a_config_where_nothing_reads_it_is_refused_with_the_right_place(on: RunCli) -> None:
    given = changed(cron_job(config=False), "{}", "metadata", "annotations", names.CONFIG)
    ran = on("validate", given)
    assert f'{AT_TOP}: "{{}}": has no effect here: put it into spec.jobTemplate.metadata.annotations' in ran.out
    for path in (("spec", "template", "metadata", "annotations"), ("metadata", "labels")):
        ran = on("validate", changed(jobs.job(config=False), "{}", *path, names.CONFIG))
        assert (ran.code, "has no effect here: it is read in metadata.annotations alone" in ran.out) == (1, True), path
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}}
    deployment["spec"] = {"template": {"metadata": {"annotations": {names.CONFIG: "{}"}}, "spec": {"containers": []}}}
    assert (
        "only JobSets, Jobs and LeaderWorkerSets have a start barrier, and pods with the label of a start group"
        in on("validate", deployment).out
    )


def test_a_job_that_asks_for_no_gate_is_left_alone(on: RunCli) -> None:
    given = without(jobs.job(config=False), "spec", "completionMode")
    assert on("validate", given).code == 0
    ran = on("validate", given, "--require-gate")
    assert (ran.code, "no gang in this manifest" in ran.out) == (1, True)
    assert yaml.safe_load(on("render", given).out) == given


def test_render_prints_the_job_with_its_barrier(on: RunCli) -> None:
    ran = on("render", jobs.job(), "-o", "json")
    made = json.loads(ran.out)
    (barrier,) = made["spec"]["template"]["spec"]["initContainers"]
    assert (ran.code, barrier["name"]) == (0, names.BARRIER_CONTAINER)
    assert made["metadata"]["labels"][names.GATED] == names.GATED_JOB
    assert made["spec"]["template"]["metadata"]["labels"][names.GATED] == names.GATED_JOB


def test_render_prints_a_cron_job_as_it_is_and_says_why(on: RunCli) -> None:
    ran = on("render", cron_job())
    assert (ran.code, yaml.safe_load(ran.out)) == (0, cron_job())
    assert "each of its Jobs gets its barrier when it is created" in ran.err
    bad = on("render", cron_job(spec={"parallelism": 3}))
    assert (bad.code, bad.out, "spec.jobTemplate.spec.parallelism" in bad.err) == (1, "", True)
