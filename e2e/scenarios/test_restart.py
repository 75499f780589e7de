"""JobSet restarts a running gang: the old release is not valid for the new pods."""

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names


async def test_the_restarted_gang_is_held_again(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 4)
        workers = gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request)
        await scenario.apply(gangs.gang(workers, failurePolicy={"maxRestarts": 1}))
        first = await scenario.until_running(4)
        await extended.set_capacity(node, 3)  # bound pods stay; the next four will be one short
        await scenario.kubectl("exec", predicates.name_of(first[0]), "--container=main", "--", *gangs.FAIL)
        held = [pod for pod in await scenario.until_held(3) if predicates.held(pod)]
        assert {predicates.attempt_of(pod) for pod in held} == {"1"}
        await scenario.until_condition(names.REASON_WAITING, "3/4 pods started")
        await extended.set_capacity(node, 4)
        pods = await scenario.until(lambda pods: sum(map(predicates.runs, pods)) == 4 and len(pods) == 4)
        assert {predicates.attempt_of(pod) for pod in pods} == {"1"}
        verdict = await scenario.until_verdict(lambda verdict: verdict.generation.attempt == 1)
        assert verdict.generation.uid == (await scenario.jobset())["metadata"]["uid"]
        await scenario.check_order(4)
