"""The JobSet controller stand-in, on both control planes: the real Job controller makes the pods on the real one."""

from jobset_gate import names
from jobset_gate.fake import manifests
from jobset_gate.fake.kubelet import PodFault, PodMatch
from jobset_gate.kube.resources import JOBS, JOBSETS, PODS
from tests.unit.fake.world import FakeClusterStory, Run, label, leaving, plain, running


def test_jobs_and_pods_carry_the_marks_of_jobset(run: Run) -> None:
    """Names, labels and annotations alike on Jobs and pods, owner, subdomain, template metadata."""

    async def story(world: FakeClusterStory) -> None:
        extra = {"labels": {"team": "a"}, "annotations": {"note": "b"}}
        leader = manifests.replicated_job("leader")
        workers = manifests.replicated_job("workers", replicas=2, parallelism=2, metadata=extra)
        made = await world.create(JOBSETS, manifests.jobset("set", replicated_jobs=[leader, workers]))
        jobs = await world.jobs(3)
        assert [job["metadata"]["name"] for job in jobs] == ["set-leader-0", "set-workers-0", "set-workers-1"]
        last = jobs[2]["metadata"]
        expected = {
            names.JS_NAME: "set",
            names.JS_UID: made["metadata"]["uid"],
            names.JS_REPLICATED_JOB: "workers",
            names.JS_JOB_INDEX: "1",
            names.JS_JOB_GLOBAL_INDEX: "2",
            names.JS_RESTART_ATTEMPT: "0",
        }
        for marks in (last["labels"], last["annotations"]):
            assert expected.items() <= marks.items()
        assert last["labels"]["team"] == "a"
        assert last["annotations"]["note"] == "b"
        assert last["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
        assert last["ownerReferences"][0]["controller"] is True
        pods = [pod for pod in await world.pods(5) if label(pod, names.JS_JOB_GLOBAL_INDEX) == "2"]
        assert len(pods) == 2
        for pod in pods:
            assert expected.items() <= pod["metadata"]["labels"].items()
            assert expected.items() <= pod["metadata"]["annotations"].items()
            assert label(pod, "batch.kubernetes.io/job-name") == "set-workers-1"
            assert pod["spec"]["subdomain"] == "set"
            assert "team" not in pod["metadata"]["labels"]

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
        assert (await world.get(JOBSETS, "set"))["status"]["restarts"] == 1
        pods = await world.until(PODS, lambda pods: len(running(pods)) == 2)
        assert {label(pod, names.JS_RESTART_ATTEMPT) for pod in running(pods)} == {"1"}
        world.kubelets.clear_fault(first)
        world.kubelets.restart(PodMatch(job_index=1), "main")
        world.kubelets.inject_fault(PodFault(exit_codes={"*": 1}))
        failed = await world.until_condition(JOBSETS, "set", "Failed")
        assert failed["reason"] == "ReachedMaxRestarts"
        assert (await world.get(JOBSETS, "set"))["status"]["restarts"] == 1

    run(story)
