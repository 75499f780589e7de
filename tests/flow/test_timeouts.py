"""A gang that is not complete in time fails together, with the missing pods named (A7)."""

from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import PODS
from jobset_gate.settings import Barrier, Settings
from jobset_gate_demo.fake import manifests
from jobset_gate_demo.fake.kubelet import PodFault, PodMatch
from tests.flow.conftest import MakeEnvironment
from tests.flow.environment import Environment, Json, alive, barrier, held, runs

GANG = "gang"
STUCK = PodFault(PodMatch(job_index=1, index=1), image_pull_backoff=names.BARRIER_CONTAINER)


def gang(restart_policy: str = "Never", backoff_limit: int = 0, timeout: int | None = 300, **fields: object) -> Json:
    workers = manifests.replicated_job(
        replicas=2, parallelism=2, backoff_limit=backoff_limit, pod={"restartPolicy": restart_policy}
    )
    config = {} if timeout is None else {names.TIMEOUT_FIELD: timeout}
    return manifests.jobset(GANG, replicated_jobs=[workers], config=config, **fields)  # type: ignore[arg-type]


def ended(pod: Json) -> Json:
    """How its barrier ended, now or the last time."""
    for status in pod["status"].get("initContainerStatuses") or ():
        if status["name"] == names.BARRIER_CONTAINER:
            state = status.get("state") or {}
            return dict(state.get("terminated") or (status.get("lastState") or {}).get("terminated") or {})
    return {}


async def time_out(stage: Environment, manifest: Json) -> None:
    """The gang's time passes when all of its pods but the stuck one have started."""
    await stage.apply(manifest)
    await stage.until_condition(GANG, names.REASON_WAITING, "3/4 pods started; missing: 1 pod: BarrierImagePull")
    await stage.pass_timeout(GANG)


async def until_timed_out(stage: Environment, count: int) -> list[str]:
    """Until the barriers of so many pods have ended for a timeout; their messages."""
    seen: dict[str, str] = {}

    def collect(pods: list[Json]) -> bool:
        for pod in pods:
            if end := ended(pod):
                assert end["exitCode"] == names.EXIT_TIMED_OUT
                seen[pod["metadata"]["name"]] = end["message"]
        return len(seen) >= count

    await stage.until(collect)
    return list(seen.values())


async def test_every_barrier_exits_124_and_names_the_missing_pod(stage: Environment) -> None:
    stage.actors.kubelets.inject_fault(STUCK)
    await time_out(stage, gang())
    for message in await until_timed_out(stage, 3):
        assert message.startswith("timed out after 300s: 3/4 pods started; missing: 1 pod: BarrierImagePull")
    reported = await stage.until_condition(GANG, names.REASON_TIMED_OUT)
    assert reported["status"] == "False"
    assert "workers-1/1" in reported["message"]
    assert [reason for reason, _ in await stage.events(GANG)] == [names.REASON_TIMED_OUT]


async def test_jobsets_failure_policy_restarts_the_gang_which_then_waits_again(stage: Environment) -> None:
    stuck = stage.actors.kubelets.inject_fault(STUCK)
    await time_out(stage, gang(failurePolicy={"maxRestarts": 1}))
    verdict = await stage.until_verdict(GANG, lambda verdict: verdict.kind is VerdictKind.TIMEOUT)
    assert verdict.generation.attempt == 0
    stage.actors.kubelets.clear_fault(stuck)
    pods = await stage.until_running(4)
    assert {pod["metadata"]["labels"][names.JS_RESTART_ATTEMPT] for pod in pods if runs(pod)} == {"1"}


async def test_under_restart_policy_on_failure_the_verdict_stands_until_the_job_gives_up(stage: Environment) -> None:
    stage.actors.kubelets.inject_fault(STUCK)
    await time_out(stage, gang("OnFailure", backoff_limit=1))
    await stage.until_verdict(GANG, lambda verdict: verdict.kind is VerdictKind.TIMEOUT)
    await stage.until_workload(GANG, lambda jobset: jobset.get("status", {}).get("terminalState") == "Failed")
    assert not any(map(runs, stage.pods.all()))


async def test_on_timeout_release_opens_the_gate_for_the_pods_there_are(stage: Environment) -> None:
    stage.actors.kubelets.inject_fault(STUCK)
    await time_out(stage, gang(annotations={names.ON_TIMEOUT: names.ON_TIMEOUT_RELEASE}))
    await stage.until_running(3)
    reported = await stage.until_condition(GANG, names.REASON_TIMED_OUT)
    assert reported["status"] == "True"
    assert "workers-1/1" in reported["message"]


async def test_each_barrier_ends_by_its_own_limit_when_the_controller_is_gone(make_stage: MakeEnvironment) -> None:
    settings = Settings(barrier=Barrier(grace_seconds=1))
    async with make_stage(controller=False, settings=settings) as stage:
        await stage.apply(gang(timeout=2))
        messages = await until_timed_out(stage, 4)
        assert not any(message.startswith("timed out after 2s: ") for message in messages)
        assert not any(held(pod) or "running" in barrier(pod) for pod in stage.pods.all() if alive(pod))


EVICTED = {"reason": "Evicted", "message": "The node was low on resource: memory."}


async def lose_an_index(stage: Environment, **fields: object) -> None:
    """A gang without a timeout, whose pod 1/1 has failed with its only try."""
    stage.actors.kubelets.inject_fault(PodFault(PodMatch(job_index=1, index=1), unschedulable="no room"))
    per_index = {"backoff_limit": None, "job": {"backoffLimitPerIndex": 0}, "pod": {"restartPolicy": "Never"}}
    workers = manifests.replicated_job(replicas=2, parallelism=2, **per_index)  # type: ignore[arg-type]
    await stage.apply(manifests.jobset(GANG, replicated_jobs=[workers], config={}, **fields))  # type: ignore[arg-type]
    pods = await stage.until_held(3)
    last = next(pod for pod in pods if not barrier(pod))
    status = {"status": {"phase": "Failed", **EVICTED}}
    await stage.client.patch(
        PODS, last["metadata"]["name"], stage.namespace, body=status, patch=PatchType.MERGE, subresource="status"
    )


async def test_an_index_that_has_failed_for_good_ends_a_gang_without_a_timeout_at_once(stage: Environment) -> None:
    await lose_an_index(stage)
    for message in await until_timed_out(stage, 3):
        assert message == (
            "ended, since an index has failed for good: 3/4 pods started; missing: 1 pod: IndexFailed: "
            "its pod failed: Evicted: The node was low on resource: memory. (workers-1/1)"
        )
    reported = await stage.until_condition(GANG, names.REASON_INDEX_FAILED, "(workers-1/1)")
    assert reported["status"] == "False"
    assert [reason for reason, _ in await stage.events(GANG)] == [names.REASON_INDEX_FAILED]
    # Each barrier has used up its own index's only try, so the Jobs fail, and JobSet's failure policy follows.
    await stage.until_workload(GANG, lambda jobset: jobset.get("status", {}).get("terminalState") == "Failed")


async def test_on_timeout_release_opens_the_gate_at_once_without_a_failed_index(stage: Environment) -> None:
    await lose_an_index(stage, annotations={names.ON_TIMEOUT: names.ON_TIMEOUT_RELEASE})
    await stage.until_running(3)
    reported = await stage.until_condition(GANG, names.REASON_INDEX_FAILED)
    assert reported["status"] == "True"
