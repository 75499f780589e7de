"""Each channel alone carries a verdict to the barriers (A6)."""

from dataclasses import replace

from jobset_gate import names
from jobset_gate.model import Kind
from jobset_gate.sim import manifests
from jobset_gate.sim.kubelet import Trouble, Where
from tests.flow.conftest import MakeStage
from tests.flow.stage import QUICK, Json, passed

NEVER = 100_000.0
GANG = "gang"


async def test_the_annotation_alone_releases_a_gang(make_stage: MakeStage) -> None:
    """A kubelet that never refreshes the volume by itself."""
    async with make_stage(behaviour=replace(QUICK, configmap_sync=NEVER)) as stage:
        await stage.apply(manifests.gang(GANG, jobs=2, pods=3))
        pods = await stage.until_running(6)
        assert any(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)


async def test_the_configmap_alone_releases_a_gang(make_stage: MakeStage) -> None:
    async with make_stage(controller=False) as stage:
        stage.start_controller(patch_concurrency=0)
        await stage.apply(manifests.gang(GANG, jobs=2, pods=3))
        pods = await stage.until_running(6)
        assert not any(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)


async def test_the_configmap_alone_releases_a_gang_whose_controller_died_after_the_decision(
    make_stage: MakeStage,
) -> None:
    async with make_stage(controller=False, behaviour=replace(QUICK, configmap_sync=2.0)) as stage:
        stage.start_controller(patch_concurrency=0)
        await stage.apply(manifests.gang(GANG, jobs=2, pods=3))
        await stage.until_verdict(GANG)
        await stage.stop_controller()
        await stage.until_running(6)


async def test_the_annotation_carries_a_timeout_too(make_stage: MakeStage) -> None:
    async with make_stage(behaviour=replace(QUICK, configmap_sync=NEVER)) as stage:
        stage.actors.kubelets.trouble(Trouble(Where(job_index=0, index=0), unschedulable="no room"))
        manifest = manifests.gang(GANG, jobs=1, pods=3, timeout=1, max_restarts=None)
        await stage.apply(manifest)
        verdict = await stage.until_verdict(GANG)
        assert verdict.kind is Kind.TIMEOUT
        await stage.until_jobset(GANG, lambda jobset: jobset.get("status", {}).get("terminalState") == "Failed")


async def test_a_pod_that_comes_after_the_release_needs_no_patch(make_stage: MakeStage) -> None:
    """It finds the verdict in its volume when it starts."""
    async with make_stage() as stage:
        workers = manifests.replicated_job(replicas=1, parallelism=2, backoff_limit=6)
        await stage.apply(manifests.jobset(GANG, replicated_jobs=[workers], config={}))
        (first, _) = await stage.until_running(2)
        name = first["metadata"]["name"]
        await stage.plane.kubectl("delete", "pod", "-n", stage.namespace, name, "--grace-period=0", "--force")

        def replaced(pods: list[Json]) -> bool:
            return all(map(passed, pods)) and name not in {pod["metadata"]["name"] for pod in pods} and len(pods) == 2

        pods = await stage.until(replaced)
        (new,) = [pod for pod in pods if names.VERDICT not in pod["metadata"]["annotations"]]
        assert new["metadata"]["name"] != name
