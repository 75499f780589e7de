"""Timed out under restartPolicy Never: the Jobs fail, JobSet's failurePolicy restarts the gang, which waits again."""

from typing import Final

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind

LIMIT: Final = 25
"""Seconds in which, on a busy machine too, all pods that are bound start."""


async def test_the_gang_fails_together_and_its_restart_is_a_new_gang(scenario: Scenario, nodes: Nodes) -> None:
    node, other = (await nodes.workers())[:2]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, 3)
        workers = gangs.workers(scenario.image, jobs=2, pods=2, resources=extended.request)
        await scenario.apply(gangs.gang(workers, timeout=LIMIT, failurePolicy={"maxRestarts": 1}))
        await scenario.until_held(3)
        verdict = await scenario.until_verdict()
        assert (verdict.kind, verdict.generation.attempt) == (VerdictKind.TIMEOUT, 0)
        await scenario.until(lambda _: len(scenario.ends) >= 3)
        ended = dict(scenario.ends)
        assert {end["exitCode"] for end in ended.values()} == {names.EXIT_TIMED_OUT}
        assert all(f"timed out after {LIMIT}s: 3/4 pods started" in end["message"] for end in ended.values())
        assert not any(map(predicates.has_run, scenario.pods.all()))
        await extended.set_capacity(other, 1)  # at once, where nobody has known of any: the next limit runs already
        pods = await scenario.until_running(4)
        assert {predicates.attempt_of(pod) for pod in pods} == {"1"}
        await scenario.until_condition(names.REASON_STARTED)
