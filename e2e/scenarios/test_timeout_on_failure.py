"""Timed out under restartPolicy OnFailure: the kubelet restarts the barrier, the verdict stands, the JobSet fails."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

TOLD_TO_STOP = 143


async def test_the_verdict_stands_until_the_jobs_give_up(world: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    restarts: dict[str, int] = {}

    def collect(pods: list[predicates.Json]) -> bool:
        for pod in pods:
            status = predicates.init_status(pod, names.BARRIER_CONTAINER)
            restarts[predicates.name_of(pod)] = max(
                restarts.get(predicates.name_of(pod), 0), status.get("restartCount", 0)
            )
        return max(restarts.values(), default=0) > 0

    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(node, 3)
        workers = gangs.workers(
            world.image, jobs=2, pods=2, resources=seats.request, restart_policy="OnFailure", backoff_limit=2
        )
        await world.apply(gangs.gang(workers, timeout=15, failurePolicy={"maxRestarts": 0}))
        await world.until(collect)
        # One seat more changes nothing: the verdict of this generation has been given.
        await seats.set_capacity(node, 4)
        failed = await world.until_jobset(predicates.failed)
        assert predicates.condition(failed)["reason"] == names.REASON_TIMED_OUT
        # A Job that gives up stops its pods, whose barriers may have been started once more just then.
        ended = {end["exitCode"] for end in world.ends.values()}
        assert names.EXIT_TIMED_OUT in ended
        assert ended <= {names.EXIT_TIMED_OUT, TOLD_TO_STOP}
        assert not any(map(predicates.has_run, world.pods.all()))
