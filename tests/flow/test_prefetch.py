"""With prefetch-images a pod counts only once the images of its main containers are on its node (A8)."""

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.kubelet import PodFault, PodMatch
from jobset_gate.settings import Settings
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import Environment, Json, held, runs, serve_admission
from tests.plane.kubectl import KubectlFailed

GANG = "gang"
COPIER, FIRST, SECOND = (f"group-scheduling-prefetch{end}" for end in ("", "-1", "-2"))
AGAIN = (("apply",), ("apply", "--server-side", "--force-conflicts"), ("replace",))
NO_PULL = PodFault(PodMatch(job_index=1, index=1), image_pull_backoff=SECOND)


def gang(timeout: int = 300, backoff_limit: int = 0) -> Json:
    """Two Jobs of two pods with two main images and an init container of the user's, as sparse as a user writes it."""
    mains = [manifests.container("main", "train:1", imagePullPolicy="Always"), manifests.container("log", "log:1")]
    own = [manifests.container("fetch", "fetch:1")]
    workers = manifests.replicated_job(
        replicas=2, parallelism=2, backoff_limit=backoff_limit, containers=mains, init_containers=own
    )
    annotations = {names.PREFETCH_IMAGES: "true"}
    config = {names.TIMEOUT_FIELD: timeout}
    return manifests.jobset(GANG, replicated_jobs=[workers], config=config, annotations=annotations)


def template(jobset: Json) -> Json:
    return dict(jobset["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"])


def done(pod: Json) -> set[str]:
    """Its init containers that have ended well."""
    statuses = pod["status"].get("initContainerStatuses") or ()
    return {one["name"] for one in statuses if one["state"].get("terminated", {}).get("exitCode") == 0}


async def once_more(stage: Environment, *verb: str) -> None:
    """The user's manifest again. `replace` reads before it writes: the JobSet's status may be written in between."""
    while True:
        try:
            await stage.plane.kubectl(*verb, "-n", stage.namespace, "-f", "-", stdin=stage.in_namespace(gang()))
        except KubectlFailed as refused:
            if "Conflict" not in str(refused):
                raise
        else:
            return


async def test_it_is_stored_as_designed_and_the_gang_runs(stage: Environment) -> None:
    await stage.apply(gang())
    stored = template(await stage.jobset(GANG))
    init = stored["initContainers"]
    assert [one["name"] for one in init] == ["fetch", COPIER, FIRST, SECOND, names.BARRIER_CONTAINER]
    assert [(one["image"], one.get("imagePullPolicy")) for one in init[2:4]] == [("train:1", "Always"), ("log:1", None)]
    assert [one["name"] for one in stored["volumes"]] == [names.VOLUME, names.PREFETCH_VOLUME]
    for pod in await stage.until_running(4):
        (first, second) = pod["spec"]["initContainers"][2:4]
        assert (first["imagePullPolicy"], second["imagePullPolicy"]) == ("Always", "IfNotPresent")
        if runs(pod):
            assert done(pod) >= {"fetch", COPIER, FIRST, SECOND}


async def test_a_pod_whose_image_cannot_be_pulled_does_not_count_and_is_named(stage: Environment) -> None:
    stuck = stage.actors.kubelets.inject_fault(NO_PULL)
    await stage.apply(gang())
    pods = await stage.until_held(3)
    assert all(done(pod) >= {COPIER, FIRST, SECOND} for pod in pods if held(pod))
    reported = await stage.until_condition(GANG, names.REASON_WAITING, "3/4 pods started")
    assert reported["status"] == "False"
    assert await stage.verdict(GANG) is None
    stage.actors.kubelets.clear_fault(stuck)
    await stage.until_running(4)


async def test_the_same_manifest_again_changes_nothing(make_stage: MakeEnvironment) -> None:
    """In every way there is; nor does an upgrade to another barrier image meanwhile, nor a suspension after that."""
    other = Settings.model_validate({"barrier": {"image": "other:1", "runAsUser": 7}})
    async with make_stage(webhook=False) as stage:
        async with serve_admission(stage, Settings()):
            await stage.apply(gang())
            await stage.until_running(4)
            before = await stage.jobset(GANG)
        async with serve_admission(stage, other):
            for again in 2 * AGAIN:
                await once_more(stage, *again)
                after = await stage.jobset(GANG)
                assert after["spec"] == before["spec"], again
                assert after["metadata"]["generation"] == before["metadata"]["generation"], again
            await stage.suspend(GANG)
            await stage.until(lambda pods: not pods)
            await stage.suspend(GANG, suspended=False)
            pods = await stage.until_running(4)
            assert template(await stage.jobset(GANG)) == template(before)
            assert all(pod["metadata"]["annotations"][names.EPOCH] == "1" for pod in pods)


async def test_what_it_says_at_creation_stays(stage: Environment) -> None:
    await stage.apply(gang())
    patch = '{"metadata":{"annotations":{"jobset-gate.dev/prefetch-images":"false"}}}'
    said = await stage.plane.kubectl.refused(
        "patch", "-n", stage.namespace, f"jobset/{GANG}", "--type=merge", "-p", patch
    )
    assert "is fixed when the JobSet is created" in said
    dropped = await stage.merge(GANG, {"metadata": {"annotations": {names.PREFETCH_IMAGES: None}}})
    assert dropped["metadata"]["annotations"][names.PREFETCH_IMAGES] == "true"
