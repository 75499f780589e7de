"""The embedded cluster's Job controller behaves as the real one does: the same stories run on both."""

from functools import partial
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBS, PODS
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.unit.fake.world import FakeClusterStory, Run, living, on_embedded, on_real


@pytest.fixture(params=["embedded", pytest.param("real", marks=pytest.mark.real)])
def run(request: pytest.FixtureRequest) -> Run:
    """Runs a story on the embedded cluster in virtual time, and again on the real control plane."""
    if request.param == "embedded":
        return on_embedded
    return partial(on_real, request.getfixturevalue("real_plane"))


def job(pods: int, **spec: Any) -> dict[str, Any]:
    """An Indexed Job."""
    template = {
        "metadata": {"annotations": {names.EPOCH: "0"}, "labels": {"own": "label"}},
        "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
    }
    sizes = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 0}
    return {"metadata": {"name": "job"}, "spec": {**sizes, **spec, "template": template}}


async def status(world: FakeClusterStory) -> dict[str, Any]:
    found: dict[str, Any] = (await world.client.get(JOBS, "job", world.namespace))["status"]
    return found


def test_an_indexed_job_makes_one_pod_per_index(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        made = await world.create(JOBS, job(3))
        pods = {pod["metadata"]["labels"][names.JOB_COMPLETION_INDEX]: pod for pod in await world.pods(3)}
        assert sorted(pods) == ["0", "1", "2"]
        for index, pod in pods.items():
            meta = pod["metadata"]
            assert meta["name"].startswith(f"job-{index}-")
            assert meta["annotations"][names.JOB_COMPLETION_INDEX] == index
            assert meta["annotations"][names.EPOCH] == "0"
            assert meta["labels"]["own"] == "label"
            assert meta["labels"]["batch.kubernetes.io/job-name"] == meta["labels"]["job-name"] == "job"
            assert meta["labels"][names.JOB_CONTROLLER_UID] == made["metadata"]["uid"]
            assert meta["ownerReferences"][0]["kind"] == "Job"
            assert meta["ownerReferences"][0]["controller"] is True
            assert pod["spec"]["hostname"] == f"job-{index}"
            assert [item["name"] for item in pod["spec"]["containers"][0]["env"]] == ["JOB_COMPLETION_INDEX"]

    run(story)


def test_a_job_is_complete_when_every_index_has_succeeded(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        world.kubelets.inject_fault(PodFault(main_seconds=0.1))
        await world.create(JOBS, job(4))
        await world.until_condition(JOBS, "job", "Complete")
        done = await status(world)
        assert done["completedIndexes"] == "0-3"
        assert done["succeeded"] == 4
        assert done.get("active", 0) == 0
        assert done["completionTime"]
        assert [it["type"] for it in done["conditions"]] == ["SuccessCriteriaMet", "Complete"]

    run(story)


def test_a_failed_pod_beyond_the_backoff_limit_fails_the_job_and_ends_its_pods(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        world.kubelets.inject_fault(PodFault(PodMatch(index=1), main_seconds=0.2, exit_code=9))
        await world.create(JOBS, job(3))
        failed = await world.until_condition(JOBS, "job", "Failed")
        assert failed["reason"] == "BackoffLimitExceeded"
        assert not living(await world.until(PODS, lambda pods: not living(pods)))
        # The pods that it ended count too, all of them or none, as kube-controller-manager happens to see them.
        assert (await status(world))["failed"] >= 1

    run(story)


def test_a_suspended_job_has_no_pods_and_no_start_and_a_resumed_one_makes_them_of_its_new_template(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        async def patch(**spec: Any) -> None:
            await world.client.patch(JOBS, "job", world.namespace, body={"spec": spec}, patch=PatchType.MERGE)

        await world.create(JOBS, job(2))
        await world.pods(2)
        await patch(suspend=True)
        await world.until_condition(JOBS, "job", "Suspended")
        await world.pods(0)
        stopped = await world.until_one(JOBS, "job", lambda it: not it["status"].get("active"))
        assert "startTime" not in stopped["status"]
        await patch(suspend=False, template={"metadata": {"annotations": {names.EPOCH: "1"}}})
        await world.until_condition(JOBS, "job", "Suspended", "False")
        assert [pod["metadata"]["annotations"][names.EPOCH] for pod in await world.pods(2)] == ["1", "1"]
        assert "startTime" in await status(world)

    run(story)
