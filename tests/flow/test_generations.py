"""Restart, suspension, replacement and the like: a release is valid for its generation and for no other (A5)."""

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import FakeNode, PodFault, PodMatch
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView, is_true
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import Environment, Json, alive, held, runs

GANG = "gang"


def epoch(pod: Json) -> str:
    return str(pod["metadata"]["annotations"][names.EPOCH])


def attempt(pod: Json) -> str:
    return str(pod["metadata"]["labels"][names.JS_RESTART_ATTEMPT])


def uids(pods: list[Json]) -> set[str]:
    return {pod["metadata"]["uid"] for pod in pods}


def patient_gang() -> Json:
    """Its Jobs forgive lost pods: a deleted pod counts against the backoffLimit."""
    workers = manifests.replicated_job(replicas=2, parallelism=2, backoff_limit=6)
    return manifests.jobset(GANG, replicated_jobs=[workers], config={names.TIMEOUT_FIELD: 300})


async def running_gang(stage: Environment, **fields: Any) -> list[Json]:
    await stage.apply(manifests.gang(GANG, **({"jobs": 2, "pods": 2} | fields)))
    return await stage.until_running(4)


async def test_a_restart_waits_for_its_own_release(stage: Environment) -> None:
    first = await running_gang(stage, max_restarts=1)
    stuck = stage.actors.kubelets.inject_fault(
        PodFault(PodMatch(attempt=1, job_index=1, index=1), unschedulable="no room")
    )
    stage.actors.kubelets.inject_fault(
        PodFault(PodMatch(attempt=0, job_index=0, index=0), main_seconds=0.0, exit_code=1)
    )
    stage.actors.kubelets.restart(PodMatch(attempt=0, job_index=0, index=0))

    again = await stage.until(
        lambda pods: (
            sum(held(pod) for pod in pods if attempt(pod) == "1") == 3
            and not any(runs(pod) for pod in pods if attempt(pod) == "1")
        )
    )
    assert not uids([pod for pod in again if attempt(pod) == "1"]) & uids(first)
    waiting = await stage.until_condition(GANG, names.REASON_WAITING, "3/4 pods started")
    assert waiting["status"] == "False"

    stage.actors.kubelets.clear_fault(stuck)
    verdict = await stage.until_verdict(GANG, lambda verdict: verdict.generation.attempt == 1)
    assert verdict.kind is VerdictKind.RELEASE
    await stage.until_running(4)


async def test_after_a_suspension_the_gang_waits_again(stage: Environment) -> None:
    await running_gang(stage)
    stuck = stage.actors.kubelets.inject_fault(PodFault(PodMatch(job_index=1, index=1), unschedulable="no room"))
    await stage.suspend(GANG)
    await stage.until(lambda pods: not any(map(alive, pods)))
    await stage.until_condition(GANG, names.REASON_WAITING, "suspended")
    await stage.suspend(GANG, suspended=False)

    pods = await stage.until_held(3)
    assert {epoch(pod) for pod in pods if alive(pod)} == {"1"}
    assert not any(map(runs, stage.pods.all()))
    await stage.until_condition(GANG, names.REASON_WAITING, "3/4 pods started")
    stage.actors.kubelets.clear_fault(stuck)
    await stage.until_running(4)
    verdict = await stage.verdict(GANG)
    assert verdict is not None
    assert verdict.generation.epoch == 1


async def test_a_job_that_is_done_in_the_moment_of_the_suspension_holds_nobody_up_after_the_resume(
    stage: Environment,
) -> None:
    """Its Job is suspended and Complete at once, and nobody resumes a Job that is done."""
    await stage.apply(manifests.gang(GANG, jobs=2, pods=1))
    await stage.until_running(2)
    stage.actors.kubelets.finish(PodMatch(job_index=1))
    await stage.suspend(GANG)
    async with ObjectView(stage.client, JOBS, stage.namespace) as jobs:
        await jobs.until(lambda all_: any(is_true(job, "Complete") for job in all_), PATIENCE)
    await stage.until(lambda pods: not any(alive(pod) and pod["status"].get("phase") != "Succeeded" for pod in pods))
    await stage.suspend(GANG, suspended=False)
    verdict = await stage.until_verdict(GANG, lambda it: it.generation.epoch == 1)
    assert (verdict.kind, verdict.message) == (VerdictKind.RELEASE, "all 2 pods started")
    await stage.until_running(1)


async def test_a_replaced_pod_and_a_replaced_job_pass_at_once(stage: Environment) -> None:
    await stage.apply(patient_gang())
    pods = await stage.until_running(4)
    first = pods[0]["metadata"]
    await stage.client.delete(PODS, first["name"], stage.namespace, grace_seconds=0)
    await stage.until(lambda pods: first["uid"] not in uids(pods) and sum(map(runs, pods)) == 4)

    job = next(job for job in await stage.jobs() if job["metadata"]["name"] == f"{GANG}-workers-1")
    await stage.client.delete(JOBS, job["metadata"]["name"], stage.namespace, propagation="Foreground")
    old = {
        pod["metadata"]["uid"] for pod in stage.pods.all() if pod["metadata"]["name"].startswith(f"{GANG}-workers-1")
    }
    await stage.until(lambda pods: not old & uids(pods) and sum(map(runs, pods)) == 4)


async def test_a_counted_pod_that_is_lost_before_the_release_keeps_the_gate_closed(make_stage: MakeEnvironment) -> None:
    async with make_stage(nodes=(FakeNode("small", pods=3),)) as stage:
        await stage.apply(patient_gang())
        pods = await stage.until_held(3)
        victim = next(filter(held, pods))["metadata"]
        stuck = stage.actors.kubelets.inject_fault(
            PodFault(PodMatch(job_index=int(victim["labels"][names.JS_JOB_INDEX]),
                          index=int(victim["annotations"][names.JOB_COMPLETION_INDEX])), unschedulable="gone")
        )  # fmt: skip
        await stage.client.delete(PODS, victim["name"], stage.namespace, grace_seconds=0)
        await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=10))
        await stage.until(lambda pods: victim["uid"] not in uids(pods) and sum(map(held, pods)) == 3)
        await stage.until_condition(GANG, names.REASON_WAITING, "3/4 pods started")
        assert await stage.verdict(GANG) is None
        stage.actors.kubelets.clear_fault(stuck)
        await stage.until_running(4)


@pytest.mark.parametrize(("pods", "released"), [(3, True), (5, False)], ids=["down", "up"])
async def test_elastic_parallelism_while_waiting(make_stage: MakeEnvironment, pods: int, released: bool) -> None:
    async with make_stage(nodes=(FakeNode("small", pods=3),)) as stage:
        await stage.apply(manifests.gang(GANG, jobs=1, pods=4))
        await stage.until_held(3)
        scale = [
            {"op": "replace", "path": f"/spec/replicatedJobs/0/template/spec/{key}", "value": pods}
            for key in ("parallelism", "completions")
        ]
        await stage.client.patch(JOBSETS, GANG, stage.namespace, body=scale, patch=PatchType.JSON)
        if released:
            verdict = await stage.until_verdict(GANG)
            assert verdict.message == "all 3 pods started"
            return
        await stage.until_condition(GANG, names.REASON_WAITING, "3/5 pods started")
        await stage.actors.kubelets.add_node(FakeNode(f"{stage.namespace}-late", pods=10))
        await stage.until_running(5)


async def test_the_same_name_again_starts_closed(stage: Environment) -> None:
    await running_gang(stage)
    old = await stage.config_map(GANG)
    assert old is not None
    await stage.client.delete(JOBSETS, GANG, stage.namespace, propagation="Background")
    stuck = stage.actors.kubelets.inject_fault(PodFault(PodMatch(job_index=1, index=1), unschedulable="no room"))
    await stage.until(lambda pods: not any(map(alive, pods)))
    await stage.apply(manifests.gang(GANG, jobs=2, pods=2))
    await stage.until_held(3)
    await stage.until_condition(GANG, names.REASON_WAITING, "3/4 pods started")
    assert not any(map(runs, stage.pods.all()))
    stage.actors.kubelets.clear_fault(stuck)
    await stage.until_running(4)
    new = await stage.config_map(GANG)
    assert new is not None
    assert new["metadata"]["uid"] != old["metadata"]["uid"]
