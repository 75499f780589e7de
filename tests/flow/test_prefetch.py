"""With prefetch-images a pod counts only once the images of its main containers are on its node (A8)."""

from jobset_gate import names
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.flow.environment import Environment, Json, held

GANG = "gang"
COPIER, FIRST, SECOND = (f"group-scheduling-prefetch{end}" for end in ("", "-1", "-2"))
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


def done(pod: Json) -> set[str]:
    """Its init containers that have ended well."""
    statuses = pod["status"].get("initContainerStatuses") or ()
    return {one["name"] for one in statuses if one["state"].get("terminated", {}).get("exitCode") == 0}


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
