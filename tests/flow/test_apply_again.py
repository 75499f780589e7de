"""The user's own manifest applied again, in every way there is, is accepted and changes nothing."""

from jobset_gate import names
from jobset_gate_demo.fake import manifests
from tests.flow.environment import Environment, Json, condition


def manifest() -> Json:
    """A small story 2, written as sparsely as a user would: all defaults are left to JobSet and to us."""
    workers = manifests.replicated_job(replicas=2, parallelism=2)
    config = {names.TIMEOUT_FIELD: 300, names.TARGETS_FIELD: ["workers"]}
    return manifests.jobset("gang", replicated_jobs=[workers, manifests.replicated_job("auxiliary")], config=config)


def spec(jobset: Json) -> Json:
    return dict(jobset["spec"])


def settled(jobset: Json) -> bool:
    """Its three Jobs are ready and we have spoken: nobody writes to it any more, and `kubectl replace` meets no one."""
    ready = sum(job.get("ready", 0) for job in jobset.get("status", {}).get("replicatedJobsStatus") or ())
    return ready == 3 and (condition(jobset) or {}).get("reason") == names.REASON_STARTED


WAYS = (("apply", "--dry-run=server"), ("apply",), ("apply", "--server-side", "--force-conflicts"), ("replace",))


async def test_the_same_manifest_again_changes_nothing(stage: Environment) -> None:
    await stage.kubectl_apply(manifest())
    await stage.until_running(5)
    before = await stage.until_workload("gang", settled)
    for again in (way for way in WAYS for _ in range(2)):
        await stage.plane.kubectl(*again, "-n", stage.namespace, "-f", "-", stdin=stage.in_namespace(manifest()))
        after = await stage.jobset("gang")
        assert spec(after) == spec(before), again
        assert after["metadata"]["annotations"][names.CONFIG] == before["metadata"]["annotations"][names.CONFIG], again
        assert after["metadata"]["generation"] == before["metadata"]["generation"], again


async def test_generate_name_is_completed_so_that_the_configmap_fits(stage: Environment) -> None:
    manifest = manifests.gang(jobs=1, pods=2)
    manifest["metadata"] = {"generateName": "gang-"}
    made = await stage.create(manifest)
    name = made["metadata"]["name"]
    assert name.startswith("gang-")
    await stage.until_running(2)
    assert await stage.config_map(name) is not None


async def test_every_violation_is_reported_at_once_with_its_path(stage: Environment) -> None:
    manifest = manifests.gang(jobs=1, pods=2)
    manifest["spec"][names.CONFIG_FIELD] = {"targetReplicatedJobs": ["workers", "workers", "nobody"]}
    manifest["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]["name"] = (
        names.BARRIER_CONTAINER
    )
    said = await stage.plane.kubectl.refused(
        "apply", "-n", stage.namespace, "-f", "-", stdin=stage.in_namespace(manifest)
    )
    assert "spec.groupSchedulingConfig.targetReplicatedJobs[1]" in said
    assert "spec.groupSchedulingConfig.targetReplicatedJobs[2]" in said
    assert "spec.replicatedJobs[0].template.spec.template.spec.containers[0].name" in said


async def test_a_config_that_a_client_dropped_is_restored(stage: Environment) -> None:
    """Typed clients such as older Kueue do not know the field and write the rest back."""
    await stage.kubectl_apply(manifests.gang(jobs=1, pods=2))

    def forget(jobset: Json) -> None:
        jobset["spec"].pop(names.CONFIG_FIELD)
        jobset["metadata"]["annotations"].pop(names.CONFIG)

    await stage.rewrite("gang", forget)
    after = await stage.jobset("gang")
    assert after["spec"][names.CONFIG_FIELD] == {"timeoutAfterSeconds": 300}
    assert names.CONFIG in after["metadata"]["annotations"]
