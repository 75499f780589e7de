"""The embedded cluster's Job controller behaves as the real one does: the same stories, told to both."""

from __future__ import annotations

from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.fake.clock import EPOCH
from jobset_gate.fake.faults import Faults, Match
from jobset_gate.fake.kubelet import PodFault, PodMatch
from jobset_gate.fake.objects import stamp
from jobset_gate.kube.resources import EVENTS, JOBS, PODS, Resource
from tests.plane.planes import Real
from tests.unit.fake.world import (
    FakeClusterStory,
    Run,
    condition,
    has,
    label,
    leaving,
    living,
    on_embedded,
    on_real,
    running,
)

QUOTAS = Resource("", "v1", "resourcequotas", "ResourceQuota")


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


def test_parallelism_bounds_how_many_run_at_once(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        world.kubelets.inject_fault(PodFault(PodMatch(index=0), main_seconds=0.2))
        await world.create(JOBS, job(completions=3, parallelism=1))
        assert indexes(await world.pods(1)) == ["0"]
        await world.until_one(JOBS, "job", lambda job: job.get("status", {}).get("completedIndexes") == "0")
        assert indexes(await world.pods(1)) == ["1"]

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


@pytest.mark.parametrize(("completions", "succeed"), [(3, 3), (None, 1)])
def test_a_nonindexed_job_counts_successes(run: Run, completions: int | None, succeed: int) -> None:
    async def story(world: FakeClusterStory) -> None:
        world.kubelets.inject_fault(PodFault(main_seconds=0.1))
        await world.create(JOBS, job(mode="NonIndexed", completions=completions, parallelism=succeed))
        await world.until_condition(JOBS, "job", "Complete")
        done = await status(world)
        assert done["succeeded"] == succeed
        assert "completedIndexes" not in done

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


def test_a_failed_pod_within_the_backoff_limit_is_replaced(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        once = world.kubelets.inject_fault(PodFault(PodMatch(index=1), main_seconds=0.1, exit_codes={"main": 1}))
        await world.create(JOBS, job(backoffLimit=3))
        await world.until(PODS, lambda pods: any(pod.get("status", {}).get("phase") == "Failed" for pod in pods))
        world.kubelets.clear_fault(once)
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        assert indexes(running(pods)) == ["0", "1"]
        counted = await world.until_one(JOBS, "job", lambda job: job["status"].get("active") == 2)
        assert counted["status"]["failed"] == 1

    run(story)


def test_a_container_that_keeps_restarting_uses_up_the_backoff_limit(run: Run) -> None:
    """RestartPolicy OnFailure: restarts count, no pod fails."""

    async def story(world: FakeClusterStory) -> None:
        world.kubelets.inject_fault(PodFault(PodMatch(index=0), main_seconds=0.1, exit_codes={"main": 1}))
        await world.create(JOBS, job(restart_policy="OnFailure", backoffLimit=1))
        failed = await world.until_condition(JOBS, "job", "Failed")
        assert failed["reason"] == "BackoffLimitExceeded"

    run(story)


def test_a_pod_failure_policy_fails_the_job_at_once(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        codes = {"operator": "In", "values": [124]}
        policy = {"rules": [{"action": "FailJob", "onExitCodes": codes}]}
        world.kubelets.inject_fault(PodFault(PodMatch(index=1), main_seconds=0.1, exit_codes={"main": 124}))
        await world.create(JOBS, job(backoffLimit=6, podFailurePolicy=policy))
        failed = await world.until_condition(JOBS, "job", "Failed")
        assert failed["reason"] == "PodFailurePolicy"
        assert "exit code 124" in failed["message"]

    run(story)


def test_failures_that_a_policy_ignores_do_not_count(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        codes = {"containerName": "main", "operator": "NotIn", "values": [7]}
        policy = {"rules": [{"action": "Ignore", "onExitCodes": codes}]}
        ignored = world.kubelets.inject_fault(PodFault(PodMatch(index=1), main_seconds=0.1, exit_codes={"main": 8}))
        await world.create(JOBS, job(backoffLimit=0, podFailurePolicy=policy))
        await world.until(PODS, lambda pods: any(pod.get("status", {}).get("phase") == "Failed" for pod in pods))
        world.kubelets.clear_fault(ignored)
        await world.until(PODS, lambda pods: indexes(running(pods)) == ["0", "1"])
        assert (await status(world)).get("failed", 0) == 0

    run(story)


NOT_ZERO = {"rules": [{"action": "FailJob", "onExitCodes": {"operator": "NotIn", "values": [0]}}]}
STAYS = "test.jobset-gate.dev/stays"


async def detain(world: FakeClusterStory, pods: list[dict[str, Any]]) -> None:
    """They stay when they have ended, as pods do whose kubelet has much to clear away."""
    for pod in pods:
        await world.merge(PODS, pod["metadata"]["name"], {"metadata": {"finalizers": [*kept(pod), STAYS]}})


async def let_go(world: FakeClusterStory) -> None:
    for pod in await world.until(PODS, lambda _: True):
        if STAYS in pod["metadata"].get("finalizers", ()):
            rest = [it for it in kept(pod) if it != STAYS]
            await world.merge(PODS, pod["metadata"]["name"], {"metadata": {"finalizers": rest}})


def kept(pod: dict[str, Any]) -> list[str]:
    return list(pod["metadata"].get("finalizers", ()))


def test_a_policy_looks_at_pods_that_a_suspended_job_deletes(run: Run) -> None:
    """What makes it unsafe to suspend such a Job while its pods run."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job(podFailurePolicy=NOT_ZERO))
        await detain(world, await world.until(PODS, lambda pods: len(running(pods)) == 2))
        await world.merge(JOBS, "job", {"spec": {"suspend": True}})
        failing = await world.until_condition(JOBS, "job", "FailureTarget")
        assert failing["reason"] == "PodFailurePolicy"
        assert "exit code 143" in failing["message"]
        assert (await status(world)).get("failed", 0) == 0
        await let_go(world)

    run(story)


def test_without_a_policy_a_suspended_job_counts_nothing(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job())
        first = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        await detain(world, first)
        await world.merge(JOBS, "job", {"spec": {"suspend": True}})
        await world.until(PODS, lambda pods: all(pod["status"]["phase"] == "Failed" for pod in pods))
        await world.until_condition(JOBS, "job", "Suspended")
        await world.merge(JOBS, "job", {"spec": {"suspend": False}})
        await world.until(PODS, lambda pods: len(running(pods)) == 2)
        assert (await status(world)).get("failed", 0) == 0
        assert condition(await world.get(JOBS, "job"), "FailureTarget") is None
        await let_go(world)

    run(story)


def test_a_pod_that_is_taken_from_its_job_is_forgotten_and_replaced(run: Run) -> None:
    """Its owner reference, finalizer and label gone in one patch: what becomes of it fails nothing."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job(podFailurePolicy=NOT_ZERO))
        taken = (await world.until(PODS, lambda pods: len(running(pods)) == 2))[0]
        meta = taken["metadata"]
        nothing = {names.JOB_CONTROLLER_UID: None, "controller-uid": None}
        finalizers = [it for it in kept(taken) if it != names.JOB_TRACKING_FINALIZER]
        body = {"ownerReferences": [], "labels": nothing, "finalizers": finalizers}
        await world.merge(PODS, meta["name"], {"metadata": body})
        again = await world.until(PODS, lambda pods: len(running(pods)) == 3)
        assert sorted(indexes(again)) == sorted([*"01", index(taken) or ""])
        await detain(world, [await world.get(PODS, meta["name"])])
        await world.client.delete(PODS, meta["name"], world.namespace)
        await world.until_one(PODS, meta["name"], lambda pod: pod["status"]["phase"] == "Failed")
        await world.merge(JOBS, "job", {"spec": {"parallelism": 1}})  # so that it is looked at again
        await world.until_one(JOBS, "job", lambda one: one["status"].get("active") == 1)
        assert condition(await world.get(JOBS, "job"), "FailureTarget") is None
        assert (await status(world)).get("failed", 0) == 0
        await let_go(world)

    run(story)


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


def test_a_job_that_runs_beyond_its_deadline_fails(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job(activeDeadlineSeconds=2))
        assert (await world.until_condition(JOBS, "job", "Failed"))["reason"] == "DeadlineExceeded"
        await world.pods(0)

    run(story)


def test_a_smaller_job_gives_up_its_highest_indexes(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job(completions=4, parallelism=4))
        await world.until(PODS, lambda pods: len(running(pods)) == 4)
        await world.merge(JOBS, "job", {"spec": {"completions": 2, "parallelism": 2}})
        assert indexes(await world.pods(2)) == ["0", "1"]

    run(story)


def test_deleting_a_job_in_the_foreground_takes_its_pods_first(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job())
        await world.until(PODS, lambda pods: len(running(pods)) == 2)
        await world.client.delete(JOBS, "job", world.namespace, propagation="Foreground")
        assert await world.until(JOBS, lambda jobs: not jobs) == []
        assert await world.until(PODS, lambda pods: not pods) == []

    run(story)


@pytest.mark.real
def test_a_quota_that_denies_a_pod_is_told_in_an_event(real_plane: Real) -> None:
    """The real Job controller's words, which the embedded one's (next test) follow."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(QUOTAS, {"metadata": {"name": "few"}, "spec": {"hard": {"pods": "0"}}})
        await world.until_one(QUOTAS, "few", lambda quota: "hard" in quota.get("status", {}))
        await world.create(JOBS, job())
        told = await denied(world)
        assert told["message"].startswith("Error creating: pods ")
        assert "exceeded quota" in told["message"]
        assert told["involvedObject"]["name"] == "job"

    on_real(real_plane, story)


def test_a_pod_that_cannot_be_created_is_told_in_an_event_and_tried_again() -> None:
    faults = Faults()
    faults.fail(Match(PODS, ("create",)), status=403, message="exceeded quota: few", times=2)

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job())
        told = await denied(world)
        assert told["message"] == "Error creating: exceeded quota: few"
        assert told["involvedObject"]["name"] == "job"
        await world.pods(2)

    on_embedded(story, faults=faults)


async def denied(world: FakeClusterStory) -> dict[str, Any]:
    events = await world.until(EVENTS, lambda events: any(it["reason"] == "FailedCreate" for it in events))
    return next(it for it in events if it["reason"] == "FailedCreate")


def test_times_and_conditions_of_a_suspended_job(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job(suspend=True))
        assert (await world.until_condition(JOBS, "job", "Suspended"))["reason"] == "JobSuspended"
        before = await status(world)
        assert "startTime" not in before
        await world.merge(JOBS, "job", {"spec": {"suspend": False}})
        assert (await world.until_condition(JOBS, "job", "Suspended", "False"))["reason"] == "JobResumed"
        assert (await status(world))["startTime"]
        assert not leaving(await world.get(JOBS, "job"))
        assert condition(await world.get(JOBS, "job"), "Failed") is None
        assert not has(await world.get(JOBS, "job"), "Complete")

    run(story)


def test_a_resumed_job_starts_anew() -> None:
    """Its start time is that of the resume, so that a deadline does not count the time in between."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBS, job())
        await world.until(PODS, lambda pods: len(running(pods)) == 2)
        await world.merge(JOBS, "job", {"spec": {"suspend": True}})
        await world.until_condition(JOBS, "job", "Suspended")
        await world.let_pass(100)
        await world.merge(JOBS, "job", {"spec": {"suspend": False}})
        await world.until_condition(JOBS, "job", "Suspended", "False")
        assert (await status(world))["startTime"] >= stamp(EPOCH + 100)

    on_embedded(story)
