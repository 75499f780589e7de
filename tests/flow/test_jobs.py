"""A plain Indexed Job is a gang of its own: start, suspension, namesakes (K1, K4, K7)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable

import pytest

from jobset_gate import names
from jobset_gate.barrier.model import Verdict
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.errors import Invalid, is_stale_patch
from jobset_gate.kube.resources import JOBS
from jobset_gate.sources.table import JOB
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.fakes.eventually import PATIENCE
from tests.fakes.jobs import job
from tests.fakes.object_view import ObjectView, is_true
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import Environment, Json, alive, condition, environment, runs
from tests.plane.kinds import install_all
from tests.plane.places import Binaries
from tests.plane.planes import Real, fresh_name
from tests.plane.real import RealPlane

RUN = "run"
STUCK = PodFault(PodMatch(index=1), image_pull_backoff=names.BARRIER_CONTAINER)


class JobStage:
    """A stage whose gang is a Job."""

    def __init__(self, stage: Environment) -> None:
        self.stage = stage
        self.kubelets = stage.actors.kubelets

    async def create(self, pods: int = 2) -> Json:
        spec = {"parallelism": pods, "completions": pods, "backoffLimit": 0}
        made = job(name=RUN, namespace=self.stage.namespace, config={names.TIMEOUT_FIELD: 300}, spec=spec)
        return await self.stage.client.create(JOBS, made, self.stage.namespace)

    async def patch(self, body: Json, *, status: bool = False) -> Json:
        where = "status" if status else None
        patch = PatchType.STRATEGIC
        return await self.stage.client.patch(JOBS, RUN, self.stage.namespace, body=body, patch=patch, subresource=where)

    async def suspend(self) -> Json:
        """Returns when its pods are gone, and it can be resumed."""
        await self.patch({"spec": {"suspend": True}})
        return await self.until(
            lambda job: (
                is_true(job, "Suspended") and not job["status"].get("active") and "startTime" not in job["status"]
            )
        )

    async def resume(self) -> None:
        await self.patch({"spec": {"suspend": False}})

    async def until(self, holds: Callable[[Json], bool]) -> Json:
        return await self.stage.until_workload(RUN, holds, JOBS)

    async def until_condition(self, reason: str, text: str = "") -> Json:
        return await self.stage.until_condition(RUN, reason, text, JOBS)

    async def verdict(self) -> Verdict:
        return await self.stage.until_verdict(RUN, source=JOB)


@pytest.fixture
async def run(make_stage: MakeEnvironment) -> AsyncIterator[JobStage]:
    async with make_stage() as stage:
        yield JobStage(stage)


async def test_no_main_container_starts_before_all_pods_have(run: JobStage) -> None:
    slow = run.kubelets.inject_fault(STUCK)
    created = await run.create(pods=3)
    await run.stage.until_held(2)
    await run.until_condition(names.REASON_WAITING, "2/3 pods started; missing: 1 pod: BarrierImagePull")
    assert not any(map(runs, run.stage.pods.all()))
    run.kubelets.clear_fault(slow)
    await run.stage.until_running(3)
    reported = await run.until_condition(names.REASON_STARTED, "all 3 pods started")
    assert reported["status"] == "True"
    uid = created["metadata"]["uid"]
    (owner,) = (await run.stage.config_map(RUN, JOB) or {})["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["apiVersion"], owner["uid"]) == ("Job", "batch/v1", uid)
    assert [reason for reason, _ in await run.stage.events(RUN)] == [names.REASON_STARTED]
    condition_of = f"--for=condition={names.CONDITION}"
    await run.stage.plane.kubectl(
        "wait", "-n", run.stage.namespace, condition_of, f"job/{RUN}", f"--timeout={PATIENCE}s"
    )
    assert (await run.verdict()).generation.uid == uid


async def test_a_jobset_and_a_job_of_one_name_are_two_gangs(run: JobStage) -> None:
    stuck = run.kubelets.inject_fault(PodFault(PodMatch(job_index=-1, index=1), unschedulable="no room"))
    await run.create()
    await run.stage.create(manifests.gang(RUN, jobs=1, pods=2))
    await run.stage.until_condition(RUN, names.REASON_STARTED, "all 2 pods started")
    await run.until_condition(names.REASON_WAITING, "1/2 pods started")
    run.kubelets.clear_fault(stuck)
    await run.stage.until_running(4)


async def test_a_resumed_job_waits_again_for_all_its_pods(run: JobStage) -> None:
    await run.create()
    await run.stage.until_running(2)
    await run.suspend()
    await run.until_condition(names.REASON_WAITING, "suspended")
    stuck = run.kubelets.inject_fault(STUCK)
    await run.resume()
    pods = await run.stage.until_held(1)
    assert {pod["metadata"]["annotations"][names.EPOCH] for pod in pods if alive(pod)} == {"1"}
    await run.until_condition(names.REASON_WAITING, "1/2 pods started")
    assert (await run.verdict()).generation.epoch == 0
    run.kubelets.clear_fault(stuck)
    await run.stage.until_running(2)
    await run.until_condition(names.REASON_STARTED, "epoch 1)")


async def test_what_is_released_in_the_instant_of_a_suspension_opens_nothing_of_the_next_epoch(run: JobStage) -> None:
    stuck = run.kubelets.inject_fault(STUCK)
    await run.create()
    await run.stage.until_held(1)
    run.kubelets.clear_fault(stuck)
    await run.verdict()
    await run.suspend()
    stuck = run.kubelets.inject_fault(STUCK)
    await run.resume()
    await run.until_condition(names.REASON_WAITING, "1/2 pods started")
    assert not any(alive(pod) and runs(pod) for pod in run.stage.pods.all())
    run.kubelets.clear_fault(stuck)
    await run.stage.until_running(2)
    await run.until_condition(names.REASON_STARTED, "epoch 1)")


async def test_the_same_name_again_waits_though_pods_of_the_job_before_run(run: JobStage) -> None:
    await run.create()
    old = {pod["metadata"]["uid"] for pod in await run.stage.until_running(2)}
    await run.stage.client.delete(JOBS, RUN, run.stage.namespace, propagation="Orphan")
    async with ObjectView(run.stage.client, JOBS, run.stage.namespace) as view:
        await view.until(lambda jobs: not jobs, PATIENCE)
    stuck = run.kubelets.inject_fault(STUCK)
    await run.create()
    await run.until_condition(names.REASON_WAITING, "1/2 pods started")
    assert {pod["metadata"]["uid"] for pod in run.stage.pods.all() if runs(pod)} == old
    run.kubelets.clear_fault(stuck)
    await run.stage.until_running(4)


async def test_a_start_that_the_job_controller_left_is_cleared(run: JobStage) -> None:
    """Kubernetes before 1.36 leaves it; here another client puts it back."""
    await run.create()
    await run.stage.until_running(2)
    await run.suspend()
    await run.patch({"status": {"startTime": "2026-08-01T10:00:00Z"}}, status=True)
    cleared = await run.until(lambda job: "startTime" not in job["status"])
    assert condition(cleared) is not None
    await run.resume()
    await run.until_condition(names.REASON_STARTED, "epoch 1)")


async def test_a_condition_for_a_deleted_job_is_refused_on_the_next_of_its_name(run: JobStage) -> None:
    await run.create(pods=1)
    with pytest.raises(Invalid) as refused:
        await run.patch({"metadata": {"uid": "another"}, "status": {"conditions": []}}, status=True)
    assert is_stale_patch(refused.value)


# --- Before Kubernetes 1.36 -------------------------------------------------------------------------------------------

OLDER = ("MutableSchedulingDirectivesForSuspendedJobs=false", "MutablePodResourcesForSuspendedJobs=false")
"""With these the Job controller behaves as it did."""


@pytest.fixture
async def older_stage(control_plane_binaries: Binaries) -> AsyncIterator[Environment]:
    running = RealPlane(control_plane_binaries, features=OLDER, prepare=install_all)
    try:
        plane, namespace = Real(await asyncio.to_thread(running.start)), fresh_name()
        await plane.make_namespace(namespace)
        async with environment(plane, namespace) as made:
            yield made
    finally:
        await asyncio.to_thread(running.stop)


@pytest.mark.real
async def test_a_suspended_job_can_be_resumed_and_waits_again(older_stage: Environment) -> None:
    run = JobStage(older_stage)
    await run.create()
    await older_stage.until_running(2)
    await run.suspend()
    await run.resume()
    await older_stage.until_running(2)
    await run.until_condition(names.REASON_STARTED, "epoch 1)")
