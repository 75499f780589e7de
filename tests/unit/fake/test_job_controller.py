"""The embedded cluster's Job controller behaves as the real one does: the same stories run on both."""

from __future__ import annotations

from typing import Any

from jobset_gate import names
from jobset_gate.fake.kubelet import PodFault, PodMatch
from jobset_gate.kube.resources import EVENTS, JOBS, PODS
from tests.unit.fake.world import (
    FakeClusterStory,
    Run,
    label,
    living,
    running,
)


def job(
    name: str = "job",
    *,
    parallelism: int | None = 2,
    completions: int | None = 2,
    mode: str = "Indexed",
    restart_policy: str = "Never",
    **spec: Any,
) -> dict[str, Any]:
    sizes = {"parallelism": parallelism, "completions": completions}
    return {
        "metadata": {"name": name},
        "spec": {
            "completionMode": mode,
            **{key: value for key, value in sizes.items() if value is not None},
            "backoffLimit": 0,
            **spec,
            "template": {
                "metadata": {"annotations": {names.EPOCH: "0"}, "labels": {"own": "label"}},
                "spec": {"restartPolicy": restart_policy, "containers": [{"name": "main", "image": "busybox"}]},
            },
        },
    }


def index(pod: dict[str, Any]) -> str | None:
    return label(pod, names.JOB_COMPLETION_INDEX)


def indexes(pods: list[dict[str, Any]]) -> list[str]:
    return sorted(index(pod) or "" for pod in pods)


async def status(world: FakeClusterStory, name: str = "job") -> dict[str, Any]:
    found: dict[str, Any] = (await world.get(JOBS, name))["status"]
    return found


def test_an_indexed_job_makes_one_pod_per_index(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        made = await world.create(JOBS, job(completions=3, parallelism=3))
        pods = await world.pods(3)
        assert indexes(pods) == ["0", "1", "2"]
        for pod in pods:
            meta = pod["metadata"]
            assert meta["name"].startswith(f"job-{index(pod)}-")
            assert meta["annotations"][names.JOB_COMPLETION_INDEX] == index(pod)
            assert meta["annotations"][names.EPOCH] == "0"
            assert meta["labels"]["own"] == "label"
            assert meta["labels"][names.JOB_NAME] == meta["labels"]["job-name"] == "job"
            assert meta["labels"][names.JOB_CONTROLLER_UID] == made["metadata"]["uid"]
            assert meta["ownerReferences"][0]["kind"] == "Job"
            assert meta["ownerReferences"][0]["controller"] is True
            assert pod["spec"]["hostname"] == f"job-{index(pod)}"
            assert [item["name"] for item in pod["spec"]["containers"][0]["env"]] == ["JOB_COMPLETION_INDEX"]

    run(story)


def test_a_job_is_complete_when_every_index_has_succeeded(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        world.kubelets.inject_fault(PodFault(main_seconds=0.1))
        await world.create(JOBS, job(completions=4, parallelism=4))
        await world.until_condition(JOBS, "job", "Complete")
        done = await status(world)
        assert done["completedIndexes"] == "0-3"
        assert done["succeeded"] == 4
        assert done.get("active", 0) == 0
        assert done["completionTime"]
        assert [it["type"] for it in done["conditions"]] == ["SuccessCriteriaMet", "Complete"]

    run(story)


def test_suspend_takes_the_pods_and_resume_makes_only_what_is_missing(run: Run) -> None:
    """Succeeded indexes stay done; the template's changed annotation is on the new pods."""

    async def story(world: FakeClusterStory) -> None:
        world.kubelets.inject_fault(PodFault(PodMatch(index=1), main_seconds=0.1))
        await world.create(JOBS, job(completions=3, parallelism=3, backoffLimit=6))
        await world.until_one(JOBS, "job", lambda job: job.get("status", {}).get("completedIndexes") == "1")
        await world.until(PODS, lambda pods: len(running(pods)) == 2)
        await world.merge(JOBS, "job", {"spec": {"suspend": True}})
        await world.until_condition(JOBS, "job", "Suspended")
        await world.pods(0)
        suspended = await world.until_one(JOBS, "job", lambda job: job["status"].get("active", 0) == 0)
        assert suspended["status"]["completedIndexes"] == "1"
        assert suspended["status"].get("failed", 0) == 0
        await world.merge(JOBS, "job", {"status": {"startTime": None}}, subresource="status")
        note = {"metadata": {"annotations": {names.EPOCH: "1"}}}
        await world.merge(JOBS, "job", {"spec": {"suspend": False, "template": note}})
        pods = await world.pods(2)
        assert indexes(pods) == ["0", "2"]
        assert {pod["metadata"]["annotations"][names.EPOCH] for pod in pods} == {"1"}
        await world.until_condition(JOBS, "job", "Suspended", "False")

    run(story)


def test_a_failed_pod_beyond_the_backoff_limit_fails_the_job_and_ends_its_pods(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        world.kubelets.inject_fault(PodFault(PodMatch(index=1), main_seconds=0.2, exit_codes={"main": 9}))
        await world.create(JOBS, job(completions=3, parallelism=3))
        failed = await world.until_condition(JOBS, "job", "Failed")
        assert failed["reason"] == "BackoffLimitExceeded"
        assert not living(await world.until(PODS, lambda pods: not living(pods)))
        # The pods that it ended count too, all of them or none, as kube-controller-manager happens to see them.
        assert (await status(world))["failed"] >= 1

    run(story)


STAYS = "test.jobset-gate.dev/stays"


async def let_go(world: FakeClusterStory) -> None:
    for pod in await world.until(PODS, lambda _: True):
        if STAYS in pod["metadata"].get("finalizers", ()):
            rest = [it for it in kept(pod) if it != STAYS]
            await world.merge(PODS, pod["metadata"]["name"], {"metadata": {"finalizers": rest}})


def kept(pod: dict[str, Any]) -> list[str]:
    return list(pod["metadata"].get("finalizers", ()))


def test_a_pod_that_is_deleted_counts_as_failed_and_is_replaced(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job(backoffLimit=6))
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        lost = next(pod for pod in pods if index(pod) == "0")
        await world.client.delete(PODS, lost["metadata"]["name"], world.namespace)
        again = await world.until(
            PODS,
            lambda pods: (
                len(running(pods)) == 2
                and lost["metadata"]["uid"] not in {pod["metadata"]["uid"] for pod in running(pods)}
            ),
        )
        assert indexes(running(again)) == ["0", "1"]
        await world.until_one(JOBS, "job", lambda job: job["status"].get("failed") == 1)

    run(story)


async def denied(world: FakeClusterStory) -> dict[str, Any]:
    events = await world.until(EVENTS, lambda events: any(it["reason"] == "FailedCreate" for it in events))
    return next(it for it in events if it["reason"] == "FailedCreate")
