"""The JobSet controller stand-in, on both control planes: the real Job controller makes the pods on the real one."""

from __future__ import annotations

import pytest

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.kubelet import PodFault, PodMatch
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS, SERVICES
from tests.unit.fake.gates import plain
from tests.unit.fake.world import QUICK, FakeClusterStory, Run, has, label, leaving, living, running


def test_jobs_and_pods_carry_the_marks_of_jobset(run: Run) -> None:
    """Names, labels and annotations alike on Jobs and pods, owner, Service, subdomain, template metadata."""

    async def story(world: FakeClusterStory) -> None:
        extra = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
        leader = manifests.replicated_job("leader", groupName="front")
        workers = manifests.replicated_job("workers", replicas=2, parallelism=2, metadata=extra)
        made = await world.create(JOBSETS, manifests.jobset("set", replicated_jobs=[leader, workers]))
        jobs = await world.jobs(3)
        assert [job["metadata"]["name"] for job in jobs] == ["set-leader-0", "set-workers-0", "set-workers-1"]
        last = jobs[2]["metadata"]
        expected = {
            names.JS_NAME: "set",
            names.JS_UID: made["metadata"]["uid"],
            names.JS_REPLICATED_JOB: "workers",
            names.JS_REPLICATED_JOB_REPLICAS: "2",
            names.JS_JOB_INDEX: "1",
            names.JS_JOB_GLOBAL_INDEX: "2",
            names.JS_GLOBAL_REPLICAS: "3",
            names.JS_RESTART_ATTEMPT: "0",
            names.JS_GROUP_NAME: "default",
            names.JS_GROUP_REPLICAS: "2",
            names.JS_JOB_GROUP_INDEX: "1",
        }
        for marks in (last["labels"], last["annotations"]):
            assert expected.items() <= marks.items()
            assert len(marks[names.JS_JOB_KEY]) == 40
        assert last["labels"]["team"] == "a"
        assert last["annotations"]["note"] == "b"
        assert last["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        assert last["ownerReferences"][0]["controller"] is True
        pods = [pod for pod in await world.pods(5) if label(pod, names.JS_JOB_GLOBAL_INDEX) == "2"]
        assert len(pods) == 2
        for pod in pods:
            assert expected.items() <= pod["metadata"]["labels"].items()
            assert expected.items() <= pod["metadata"]["annotations"].items()
            assert label(pod, names.JOB_NAME) == "set-workers-1"
            assert pod["spec"]["subdomain"] == "set"
            assert "team" not in pod["metadata"]["labels"]
        service = await world.get(SERVICES, "set")
        assert service["spec"]["clusterIP"] == "None"
        assert service["spec"]["selector"] == {names.JS_NAME: "set"}

    run(story)


def test_a_failed_job_recreates_all_jobs_until_the_restarts_are_used_up(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        first = world.kubelets.inject_fault(
            PodFault(PodMatch(job_index=0, attempt=0), main_seconds=0.2, exit_codes={"*": 1})
        )
        await world.create(JOBSETS, plain(jobs=2, failurePolicy={"maxRestarts": 1}))
        before = {job["metadata"]["uid"] for job in await world.jobs(2)}
        again = await world.until(
            JOBS,
            lambda jobs: (
                len(jobs) == 2
                and all(label(job, names.JS_RESTART_ATTEMPT) == "1" for job in jobs)
                and not any(map(leaving, jobs))
            ),
        )
        assert before.isdisjoint(job["metadata"]["uid"] for job in again)
        assert (await world.jobset("set"))["status"]["restarts"] == 1
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        assert {label(pod, names.JS_RESTART_ATTEMPT) for pod in running(pods)} == {"1"}
        world.kubelets.clear_fault(first)
        world.kubelets.behaviour = QUICK
        world.kubelets.restart(PodMatch(job_index=1), "main")
        world.kubelets.inject_fault(PodFault(exit_codes={"*": 1}))
        failed = await world.until_condition(JOBSETS, "set", "Failed")
        assert failed["reason"] == "ReachedMaxRestarts"
        assert (await world.jobset("set"))["status"]["restarts"] == 1

    run(story)


def test_suspend_keeps_the_jobs_and_takes_their_pods(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, plain(pods=2))
        job = (await world.jobs(1))[0]
        await world.until(PODS, lambda pods: len(running(pods)) == 2)
        await world.merge(JOBSETS, "set", {"spec": {"suspend": True}})
        await world.until_condition(JOBSETS, "set", "Suspended")
        await world.pods(0)
        kept = (await world.jobs(1))[0]
        assert kept["metadata"]["uid"] == job["metadata"]["uid"]
        assert kept["spec"]["suspend"] is True
        await world.merge(JOBSETS, "set", {"spec": {"suspend": False}})
        await world.until_condition(JOBSETS, "set", "Suspended", "False")
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        assert {label(pod, names.JS_RESTART_ATTEMPT) for pod in running(pods)} == {"0"}

    run(story)


def test_resume_brings_the_changed_scheduling_into_the_pods(run: Run) -> None:
    """A template changed in the suspending write: the resumed pods carry it, merged with what the Job had."""

    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, plain())
        await world.until(PODS, lambda pods: len(running(pods)) == 1)
        path = "/spec/replicatedJobs/0/template/spec/template"
        meta = {"annotations": {names.EPOCH: "1"}, "labels": {"pool": "x"}}
        suspend = [
            {"op": "add", "path": "/spec/suspend", "value": True},
            {"op": "add", "path": f"{path}/metadata", "value": meta},
            {"op": "add", "path": f"{path}/spec/tolerations", "value": [{"key": "spot", "operator": "Exists"}]},
        ]
        await world.client.patch(JOBSETS, "set", world.namespace, body=suspend, patch=PatchType.JSON)
        await world.until_condition(JOBSETS, "set", "Suspended")
        await world.pods(0)
        await world.merge(JOBSETS, "set", {"spec": {"suspend": False}})
        pod = (await world.pods(1))[0]
        assert pod["metadata"]["annotations"][names.EPOCH] == "1"
        assert label(pod, "pool") == "x"
        assert label(pod, names.JS_NAME) == "set"
        assert {"key": "spot", "operator": "Exists"}.items() <= pod["spec"]["tolerations"][0].items()

    run(story)


@pytest.mark.parametrize("way", ["startupPolicy", "dependsOn"])
def test_later_replicated_jobs_wait_for_earlier_ones(run: Run, way: str) -> None:
    async def story(world: FakeClusterStory) -> None:
        stuck = world.kubelets.inject_fault(PodFault(PodMatch(replicated_job="first"), unschedulable="not yet"))
        second = manifests.replicated_job("second")
        body = manifests.jobset("set", replicated_jobs=[manifests.replicated_job("first"), second])
        if way == "dependsOn":
            second["dependsOn"] = [{"name": "first", "status": "Ready"}]
            body["spec"]["replicatedJobs"][1] = second
        else:
            body["spec"]["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
        await world.create(JOBSETS, body)
        await world.until(PODS, lambda pods: any(has(pod, "PodScheduled", "False") for pod in pods))
        assert [job["metadata"]["name"] for job in await world.jobs(1)] == ["set-first-0"]
        world.kubelets.clear_fault(stuck)
        await world.jobs(2)
        if way == "startupPolicy":
            await world.until_condition(JOBSETS, "set", "StartupPolicyCompleted")
            assert has(await world.jobset("set"), "StartupPolicyInProgress", "False")

    run(story)


def test_an_elastic_jobset_resizes_its_running_jobs(run: Run) -> None:
    async def story(world: FakeClusterStory) -> None:
        await world.create(JOBSETS, plain(pods=2))
        await world.until(PODS, lambda pods: len(running(pods)) == 2)
        for size in (4, 1):
            await _resize(world, size)
            await world.pods(size)
        assert living(await world.until(PODS, lambda pods: len(running(pods)) == 1))

    run(story)


async def _resize(world: FakeClusterStory, size: int) -> None:
    path = "/spec/replicatedJobs/0/template/spec"
    body = [{"op": "replace", "path": f"{path}/{key}", "value": size} for key in ("parallelism", "completions")]
    await world.client.patch(JOBSETS, "set", world.namespace, body=body, patch=PatchType.JSON)
