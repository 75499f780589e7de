"""The embedded cluster's Job controller behaves as the real one does."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBS, PODS, Resource
from jobset_gate_demo.fake.cluster import Actors
from jobset_gate_demo.fake.kubelet import Behaviour, FakeNode, PodFault, PodMatch
from tests.fakes.eventually import PATIENCE
from tests.fakes.object_view import ObjectView
from tests.plane.planes import Plane

Json = dict[str, Any]
QUICK = Behaviour(sandbox_seconds=0.05, pull_seconds=0.05, init_seconds=0.05, stop_seconds=0.05)


@dataclass(frozen=True, slots=True)
class JobStory:
    """The Job `job` in a namespace, and kubelets that run its pods."""

    actors: Actors
    namespace: str

    async def create(self, pods: int) -> Json:
        """An Indexed Job."""
        template = {
            "metadata": {"annotations": {names.EPOCH: "0"}, "labels": {"own": "label"}},
            "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
        }
        spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed", "backoffLimit": 0}
        body = {"metadata": {"name": "job"}, "spec": {**spec, "template": template}}
        return await self.actors.client.create(JOBS, body, self.namespace)

    async def patch(self, **spec: Any) -> None:
        await self.actors.client.patch(JOBS, "job", self.namespace, body={"spec": spec}, patch=PatchType.MERGE)

    async def until(self, resource: Resource, holds: Callable[[list[Json]], bool]) -> list[Json]:
        """The objects of that kind, once `holds` is true of them."""
        async with ObjectView(self.actors.client, resource, self.namespace) as view:
            await self.actors.until(view.until(holds, PATIENCE))
            return view.all()

    async def pods(self, count: int) -> list[Json]:
        """All pods that are alive, once there are so many."""
        return living(await self.until(PODS, lambda pods: len(living(pods)) == count))

    async def status(self, **conditions: str) -> Json:
        """Of the Job, once these conditions have these statuses."""

        def reached(jobs: list[Json]) -> bool:
            found = {it["type"]: it["status"] for it in jobs[0].get("status", {}).get("conditions", ())}
            return conditions.items() <= found.items()

        (job,) = await self.until(JOBS, reached)
        status: Json = job["status"]
        return status


def living(pods: list[Json]) -> list[Json]:
    there = (pod for pod in pods if "deletionTimestamp" not in pod["metadata"])
    return [pod for pod in there if pod["status"].get("phase") not in ("Failed", "Succeeded")]


@pytest.fixture
async def story(plane: Plane, namespace: str) -> AsyncIterator[JobStory]:
    nodes = [FakeNode(f"{namespace}-node", pods=1000)]
    played = plane.name == "embedded"
    async with Actors(plane.access, behaviour=QUICK, nodes=nodes, namespace=namespace, with_jobs=played) as actors:
        yield JobStory(actors, namespace)


async def test_an_indexed_job_makes_one_pod_per_index(story: JobStory) -> None:
    made = await story.create(3)
    pods = {pod["metadata"]["labels"][names.JOB_COMPLETION_INDEX]: pod for pod in await story.pods(3)}
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


async def test_a_job_is_complete_when_every_index_has_succeeded(story: JobStory) -> None:
    story.actors.kubelets.inject_fault(PodFault(main_seconds=0.1))
    await story.create(4)
    done = await story.status(Complete="True")
    assert done["completedIndexes"] == "0-3"
    assert done["succeeded"] == 4
    assert done.get("active", 0) == 0
    assert done["completionTime"]
    assert [it["type"] for it in done["conditions"]] == ["SuccessCriteriaMet", "Complete"]


async def test_a_failed_pod_beyond_the_backoff_limit_fails_the_job_and_ends_its_pods(story: JobStory) -> None:
    story.actors.kubelets.inject_fault(PodFault(PodMatch(index=1), main_seconds=0.2, exit_code=9))
    await story.create(3)
    reasons = {it["type"]: it["reason"] for it in (await story.status(Failed="True"))["conditions"]}
    assert reasons["Failed"] == "BackoffLimitExceeded"
    await story.pods(0)
    # The pods that it ended count too, all of them or none, as kube-controller-manager happens to see them.
    assert (await story.status())["failed"] >= 1


async def test_a_suspended_job_has_no_pods_and_no_start_and_a_resumed_one_makes_them_of_its_new_template(
    story: JobStory,
) -> None:
    await story.create(2)
    await story.pods(2)
    await story.patch(suspend=True)
    await story.status(Suspended="True")
    await story.pods(0)
    (stopped,) = await story.until(JOBS, lambda jobs: not jobs[0]["status"].get("active"))
    assert "startTime" not in stopped["status"]
    await story.patch(suspend=False, template={"metadata": {"annotations": {names.EPOCH: "1"}}})
    await story.status(Suspended="False")
    assert [pod["metadata"]["annotations"][names.EPOCH] for pod in await story.pods(2)] == ["1", "1"]
    assert "startTime" in await story.status()
