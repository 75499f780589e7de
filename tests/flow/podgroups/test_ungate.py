"""With no controller members stay pending; `groups ungate` heals it from any kubeconfig and says what it did (G4)."""

from typing import Any

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate.podgroups.model import Format
from tests.fakes.cli_process import finished
from tests.fakes.cli_runner import CliResult
from tests.fakes.podgroups import manifests
from tests.fakes.podgroups.manifests import bound, gated
from tests.flow.podgroups.conftest import MakeGroupEnvironment
from tests.flow.podgroups.environment import GroupEnvironment

Json = dict[str, Any]


async def ungate(stage: GroupEnvironment, *arguments: str) -> CliResult:
    return await finished(stage.plane.kubeconfig, "groups", "ungate", "-n", stage.namespace, *arguments)


async def held(
    stage: GroupEnvironment, group: str, *pods: str, way: Format = Format.SCHEDULER_PLUGINS, **more: Any
) -> None:
    """Pods as the webhook has made them while it was there."""
    minimum = 2 if way in manifests.MINIMUM_ON_POD else None
    made = (manifests.pod(name, group, way, minimum, **more) for name in pods)
    await stage.create(*(manifests.held(one, stage.namespace, group, way) for one in made))


async def test_without_controller_and_webhook_all_groups_are_freed(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "8"}, controller=False, webhook=False) as stage:
        await held(stage, "ring", "a", "b")
        await held(stage, "star", "c", "d", way=Format.ALIBABA)
        await held(stage, "other", "e", gates=["other.dev/gate"])
        await held(stage, "wide", *(f"w-{number}" for number in range(200)))
        less = {"metadata": {"labels": {names.POD_GROUP_LABEL: None}}}  # a user has removed it
        await stage.client.patch(PODS, "b", stage.namespace, body=less, patch=PatchType.MERGE)
        await stage.create(manifests.pod("free"))
        await stage.until_bound(1)
        assert sum(map(gated, stage.pods.all())) == 205

        ran = await ungate(stage, "--all", "--yes")
        assert ran.code == 0, ran.err
        assert ran.out.splitlines() == [
            f"group {stage.namespace}/other (scheduler-plugins): 1 pod freed",
            f"group {stage.namespace}/ring (scheduler-plugins): 2 pods freed",
            f"group {stage.namespace}/star (alibaba): 2 pods freed",
            f"group {stage.namespace}/wide (scheduler-plugins): 200 pods freed",
            "205 pods freed",
        ]
        room = 8
        found = await stage.until(lambda pods: not any(map(gated, pods)) and sum(map(bound, pods)) == room)
        other = next(one for one in found if one["metadata"]["name"] == "e")
        assert other["spec"]["schedulingGates"] == [{"name": "other.dev/gate"}]


async def test_owners_that_were_suspended_for_a_roll_back_go_on(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "8"}, controller=False, webhook=False) as stage:
        label = stage.label("ring", Format.ALIBABA)
        mark = {names.POD_GROUP_SUSPENDED: f"{label}.1"}
        job = manifests.job("work", "ring", 2, Format.ALIBABA, 2, suspend=True)
        job["metadata"] |= {"annotations": mark, "labels": mark}
        theirs = manifests.job("theirs", "ring", 2, Format.ALIBABA, 2, suspend=True)
        await stage.apply(job, theirs)
        ran = await ungate(stage, "--all", "--yes")
        assert ran.code == 0, ran.err
        assert f"Job {stage.namespace}/work: resumed" in ran.out
        found = await stage.client.get(JOBS, "work", stage.namespace)
        assert found["spec"]["suspend"] is False
        assert names.POD_GROUP_SUSPENDED not in found["metadata"].get("annotations", {})
        assert (await stage.client.get(JOBS, "theirs", stage.namespace))["spec"]["suspend"] is True
        await stage.until_bound(2)


async def test_who_still_holds_new_pods_is_named(make_stage: MakeGroupEnvironment) -> None:
    async with make_stage(nodes={"n": "8"}, controller=False) as stage:
        await stage.create(manifests.pod("a", "ring"))
        ran = await ungate(stage, "--all", "--yes")
        assert ran.code == 0
        assert "is still there: pods that are created from now on are held" in ran.err
        assert names.POD_WEBHOOK in ran.err
