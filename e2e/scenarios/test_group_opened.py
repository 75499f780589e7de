"""Pod groups with the cluster's own scheduler: none of a group is bound while not all of it fits, then all are."""

from e2e import groups, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

PODS = 4


async def test_a_group_waits_for_room_and_then_all_of_it_runs(scenario: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, PODS - 1)
        await scenario.apply(groups.pod_group(PODS), groups.job(scenario.image, PODS, resources=extended.request))
        await groups.until_held(scenario, PODS)
        await groups.until_reported(scenario, names.REASON_WAITING_FOR_CAPACITY)
        assert all(map(groups.held, scenario.pods.all()))
        await extended.set_capacity(node, PODS)
        running = await scenario.until_running(PODS)
        assert {predicates.name_of(pod) for pod in running} == {predicates.name_of(pod) for pod in scenario.pods.all()}
        assert not any(map(groups.held, running))


async def test_of_two_groups_that_fit_one_at_a_time_one_runs_and_none_of_the_other(
    scenario: Scenario, nodes: Nodes
) -> None:
    """The deadlock: each needs more than half of what there is, and their pods come alternately."""
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, PODS)
        both = [
            {
                **groups.job(scenario.image, 3, resources=extended.request, metadata=named(name)),
                "metadata": {"name": name},
            }
            for name in ("a", "b")
        ]
        await scenario.apply(*both)
        await scenario.until(lambda pods: len(pods) == 2 * 3 and sum(map(predicates.runs, pods)) == 3)
        (winner,) = {of(pod) for pod in scenario.pods.all() if predicates.runs(pod)}
        assert [of(pod) for pod in scenario.pods.all() if groups.held(pod)] == [({"a", "b"} - {winner}).pop()] * 3
        await scenario.kubectl("delete", "job", winner, "--wait")
        await scenario.until(lambda pods: len(pods) == 3 and all(map(predicates.runs, pods)))


def named(name: str) -> predicates.Json:
    return {"labels": {names.ALIBABA_NAME: name, names.ALIBABA_MINIMUM: "3"}}


def of(pod: predicates.Json) -> str:
    return str(pod["metadata"]["labels"][names.ALIBABA_NAME])
