"""Timed out under restartPolicy OnFailure: the kubelet restarts the barrier, the verdict stands, the JobSet fails."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

EXIT_SIGTERM = 143


async def test_the_verdict_stands_until_the_jobs_give_up(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    restarts: dict[str, int] = {}

    def collect(pods: list[predicates.Json]) -> bool:
        for pod in pods:
            status = predicates.init_status(pod, names.BARRIER_CONTAINER)
            restarts[predicates.name_of(pod)] = max(
                restarts.get(predicates.name_of(pod), 0), status.get("restartCount", 0)
            )
        return max(restarts.values(), default=0) > 0

    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3)
        workers = gangs.workers(
            scenario.image, jobs=2, pods=2, resources=extended.request, restart_policy="OnFailure", backoff_limit=2
        )
        await scenario.apply(gangs.gang(workers, timeout=15, failurePolicy={"maxRestarts": 0}))
        await scenario.until(collect)
        # One more changes nothing: the verdict of this generation has been given.
        await extended.set_capacity(node, 4)
        failed = await scenario.until_jobset(predicates.failed)
        assert predicates.condition(failed)["reason"] == names.REASON_TIMED_OUT
        # A Job that gives up stops its pods, whose barriers may have been started once more just then.
        ended = {end["exitCode"] for end in scenario.ends.values()}
        assert names.EXIT_TIMED_OUT in ended
        assert ended <= {names.EXIT_TIMED_OUT, EXIT_SIGTERM}
        assert not any(map(predicates.has_run, scenario.pods.all()))
