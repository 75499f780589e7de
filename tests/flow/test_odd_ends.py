"""When things are not as they should be (A10)."""

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import CONFIGMAPS, JOBSETS
from jobset_gate_demo.fake import manifests
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView
from tests.flow import stories
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import Environment, Json, runs

GANG = "gang"


async def test_a_jobset_made_while_the_webhook_was_off_is_reported_without_a_gate(make_stage: MakeEnvironment) -> None:
    async with make_stage(webhook=False) as stage:
        await stage.apply(manifests.gang(GANG, jobs=1, pods=2))
        await stage.until_running(2)
        reported = await stage.until_condition(GANG, names.REASON_GATE_MISSING)
        assert reported["status"] == "False"
        assert "workers" in reported["message"]
        assert await stage.config_map(GANG) is None


async def test_a_jobset_managed_elsewhere_is_injected_and_left_alone(stage: Environment) -> None:
    """MultiKueue: the worker cluster has its own jobset-gate, and the annotation carries the config there."""
    manifest = manifests.gang(GANG, jobs=1, pods=2, managedBy="kueue.x-k8s.io/multikueue")
    await stage.apply(manifest)
    await stage.apply(manifests.gang("ours", jobs=1, pods=2))
    await stage.until_condition("ours", names.REASON_STARTED)
    jobset = await stage.jobset(GANG)
    template = jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]
    assert template["initContainers"][-1]["name"] == names.BARRIER_CONTAINER
    assert names.CONFIG in jobset["metadata"]["annotations"]
    assert await stage.config_map(GANG) is None
    assert not (jobset.get("status") or {}).get("conditions")


async def test_an_orphaned_configmap_of_an_earlier_life_is_created_again(stage: Environment) -> None:
    await stories.an_earlier_lifes_configmap_has_its_name(stage)
    jobset, gate = await stage.jobset("again"), await stage.config_map("again")
    assert gate is not None
    (owner,) = gate["metadata"]["ownerReferences"]
    assert owner["uid"] == gate["metadata"]["annotations"][names.JOBSET_UID] == jobset["metadata"]["uid"]


async def test_a_decision_survives_what_is_done_to_its_configmap(stage: Environment) -> None:
    await stage.apply(manifests.gang(GANG, jobs=1, pods=2))
    await stage.until_running(2)
    before = await stage.until_verdict(GANG)
    name, uid = names.config_map_name(GANG), before.generation.uid
    damages: list[Json] = [
        {"data": None},
        {"data": {names.KEY_VERDICT: "release everything now"}},
        {"data": {names.KEY_VERDICT: None, names.KEY_WAITING_SINCE: "u 0 0 yesterday", "more": "x"}},
        {"data": {names.KEY_VERDICT: f"timeout {uid} 0 0 TimedOut\nso there\n"}},
        {"data": {names.KEY_VERDICT: f"release {uid} 7 0 AllPodsStarted\n"}},
        {"data": {names.KEY_VERDICT: f"timeout {uid} 0 7 TimedOut\n"}},
    ]

    async def until_restored(damaged: Json) -> None:
        """In a later version than that."""

        def restored(one: Json) -> bool:
            data, version = one.get("data", {}), int(one["metadata"]["resourceVersion"])
            kept = None if "more" in data else verdict_codec.parse(data.get(names.KEY_VERDICT, ""))
            decision = kept and (kept.kind, kept.generation)
            later = version > int(damaged["metadata"]["resourceVersion"])
            return later and decision == (VerdictKind.RELEASE, before.generation)

        async with ObjectView(
            stage.client, CONFIGMAPS, stage.namespace, field_selector=f"metadata.name={name}"
        ) as maps:
            await maps.until(lambda all_: any(map(restored, all_)), PATIENCE)
        assert sum(map(runs, stage.pods.all())) == 2

    for damage in damages:
        await until_restored(
            await stage.client.patch(CONFIGMAPS, name, stage.namespace, body=damage, patch=PatchType.MERGE)
        )
    last = await stage.client.get(CONFIGMAPS, name, stage.namespace)
    await stage.client.delete(CONFIGMAPS, name, stage.namespace)
    await until_restored(last)
    reported = await stage.until_condition(GANG, names.REASON_STARTED)
    assert reported["status"] == "True"


async def test_the_jobset_controllers_own_conditions_are_left_alone(stage: Environment) -> None:
    await stage.apply(manifests.gang(GANG, jobs=1, pods=2, suspend=True))
    await stage.until_condition(GANG, names.REASON_WAITING, "suspended")
    found = await stage.until_workload(
        GANG, lambda jobset: {"Suspended", names.CONDITION} <= {one["type"] for one in jobset["status"]["conditions"]}
    )
    assert len(found["status"]["conditions"]) == 2


async def test_a_finished_jobset_takes_its_configmap_along(stage: Environment) -> None:
    await stage.apply(manifests.gang(GANG, jobs=1, pods=2))
    started = ("--for=condition=GroupStarted", f"jobset/{GANG}", f"--timeout={PATIENCE}s")
    await stage.plane.kubectl("wait", "-n", stage.namespace, *started)
    await stage.client.delete(JOBSETS, GANG, stage.namespace, propagation="Background")
    async with ObjectView(stage.client, CONFIGMAPS, stage.namespace) as maps:
        await maps.until(
            lambda all_: not any(one["metadata"]["name"] == names.config_map_name(GANG) for one in all_), PATIENCE
        )
