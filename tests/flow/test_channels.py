"""Each channel alone carries a verdict to the barriers, and one that is cut is healed by the next (A6).

Of the gate stream alone: test_stream.py.
"""

from dataclasses import replace

import pytest

from controllers.barrier import verdict_patcher
from jobset_gate import names
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import QUICK, held, runs

NEVER = 100_000.0
GANG = "gang"


async def test_the_annotation_alone_releases_a_gang(make_stage: MakeEnvironment) -> None:
    """A kubelet that never syncs the ConfigMap."""
    async with make_stage(stream=False, behaviour=replace(QUICK, configmap_sync=NEVER)) as stage:
        await stage.apply(manifests.gang(GANG, jobs=2, pods=3))
        pods = await stage.until_running(6)
        assert any(names.VERDICT in pod["metadata"]["annotations"] for pod in pods)


async def test_the_configmap_alone_releases_a_gang_whose_controller_died_after_the_decision(
    make_stage: MakeEnvironment,
) -> None:
    async with make_stage(controller=False, stream=False, behaviour=replace(QUICK, configmap_sync=2.0)) as stage:
        stage.start_controller(patch_concurrency=0)
        await stage.apply(manifests.gang(GANG, jobs=2, pods=3))
        await stage.until_verdict(GANG)
        await stage.stop_controller()
        await stage.until_running(6)


@pytest.mark.parametrize("healer", ["stream", "annotation", "configmap"])
async def test_a_stream_cut_after_half_of_its_answers_is_healed(
    make_stage: MakeEnvironment, healer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the stream once the network is back; else by the patches of those that do not pass; else by the volume."""
    monkeypatch.setattr(verdict_patcher, "DELIVERY_GRACE", 2.0)  # so long the patches wait: 20 s in a cluster
    sync = 5.0 if healer == "configmap" else NEVER
    async with make_stage(controller=False, behaviour=replace(QUICK, configmap_sync=sync)) as stage:
        stage.start_controller(**({} if healer == "annotation" else {"patch_concurrency": 0}))
        late = stage.actors.kubelets.inject_fault(PodFault(PodMatch(job_index=1, index=2), unschedulable="no room"))
        await stage.apply(manifests.gang(GANG, jobs=2, pods=3))
        await stage.until_held(5)
        stage.service.let_through = 3
        stage.actors.kubelets.clear_fault(late)
        if healer == "stream":  # the others follow in their own time, and nobody may see the state before
            await stage.until(lambda pods: sum(map(runs, pods)) == 3 and sum(map(held, pods)) == 3)
            stage.service.mend()
        await stage.until_running(6)
        assert stage.service.passed == (6 if healer == "stream" else 3)
