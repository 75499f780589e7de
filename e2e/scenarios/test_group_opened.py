"""Pod groups with the cluster's own scheduler: none of a group is bound while not all of it fits, then all are."""

from e2e import groups, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names

PODS = 4


async def test_a_group_waits_for_room_and_then_all_of_it_runs(world: Scenario, nodes: Nodes) -> None:
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(node, PODS - 1)
        await world.apply(groups.pod_group(PODS), groups.job(world.image, PODS, resources=seats.request))
        await groups.until_held(world, PODS)
        await groups.until_reported(world, names.REASON_WAITING_FOR_CAPACITY)
        assert all(map(groups.held, world.pods.all()))
        await seats.set_capacity(node, PODS)
        running = await world.until_running(PODS)
        assert {predicates.name_of(pod) for pod in running} == {predicates.name_of(pod) for pod in world.pods.all()}
        assert not any(map(groups.held, running))


async def test_of_two_groups_that_fit_one_at_a_time_one_runs_and_none_of_the_other(
    world: Scenario, nodes: Nodes
) -> None:
    """The deadlock: each needs more than half of what there is, and their pods come alternately."""
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(world.namespace) as seats:
        await seats.set_capacity(node, PODS)
        both = [
            {**groups.job(world.image, 3, resources=seats.request, metadata=named(name)), "metadata": {"name": name}}
            for name in ("a", "b")
        ]
        await world.apply(*both)
        await world.until(lambda pods: len(pods) == 2 * 3 and sum(map(predicates.runs, pods)) == 3)
        (winner,) = {of(pod) for pod in world.pods.all() if predicates.runs(pod)}
        assert [of(pod) for pod in world.pods.all() if groups.held(pod)] == [({"a", "b"} - {winner}).pop()] * 3
        await world.kubectl("delete", "job", winner, "--wait")
        await world.until(lambda pods: len(pods) == 3 and all(map(predicates.runs, pods)))


def named(name: str) -> predicates.Json:
    return {"labels": {names.ALIBABA_NAME: name, names.ALIBABA_MINIMUM: "3"}}


def of(pod: predicates.Json) -> str:
    return str(pod["metadata"]["labels"][names.ALIBABA_NAME])
