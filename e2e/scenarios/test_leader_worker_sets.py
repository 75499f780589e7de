"""Groups of a LeaderWorkerSet as gangs: start, recreation, rolling update, timeout."""

from typing import Any, Final

from e2e import gangs, predicates
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from e2e.scenarios.test_jobs import LIMIT, room_for
from jobset_gate import names
from jobset_gate.barrier.model import Verdict
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import LEADER_WORKER_SETS, PODS
from jobset_gate.sources.table import LWS
from tests.fakes import lws_standin

PODS_OF_GANG: Final = f"--selector={names.LWS_NAME}=gang"
VERSION: Final = "VERSION"
"""A variable of the main containers, by which revisions differ."""

Json = dict[str, Any]


def leader_worker_set(scenario: Scenario, resources: Json, size: int, replicas: int = 1, config: str = "{}") -> Json:
    pod = {
        "terminationGracePeriodSeconds": 1,
        "containers": [gangs.main(scenario.image, resources=resources, env=[{"name": VERSION, "value": "1"}])],
    }
    return {
        "apiVersion": LEADER_WORKER_SETS.api_version,
        "kind": LEADER_WORKER_SETS.kind,
        "metadata": {"name": "gang", "annotations": {names.CONFIG: config}},
        "spec": {"replicas": replicas, "leaderWorkerTemplate": {"size": size, "workerTemplate": {"spec": pod}}},
    }


async def until_condition(scenario: Scenario, reason: str, text: str = "") -> Json:
    """The condition GroupStarted, once it has this reason and contains this text."""

    def matches(one: Json) -> bool:
        found = predicates.condition(one)
        return found.get("reason") == reason and text in found["message"]

    (found,) = await scenario.until_any(LEADER_WORKER_SETS, matches)
    return predicates.condition(found)


def leader_of(group: int, pods: list[Json]) -> Json:
    return next(pod for pod in pods if predicates.name_of(pod) == f"gang-{group}")


async def test_a_group_starts_together_and_again_when_it_is_recreated(scenario: Scenario, nodes: Nodes) -> None:
    async with (
        lws_standin.controller(scenario.client, scenario.namespace),
        room_for(scenario, nodes, 2) as (extended, node),
    ):
        await scenario.apply(leader_worker_set(scenario, extended.request, size=3))
        await scenario.until_held(2)
        await until_condition(scenario, names.REASON_WAITING, "2/3 pods started")
        await extended.set_capacity(node, 3)
        first = leader_of(0, await scenario.until_running(3))["metadata"]["uid"]
        await scenario.kubectl("wait", "lws/gang", "--for=condition=GroupStarted", "--timeout=60s")
        await scenario.check_order(3, PODS_OF_GANG)

        await extended.set_capacity(node, 2)
        await scenario.delete_pod("gang-0")
        await scenario.until_held(2)
        await until_condition(scenario, names.REASON_WAITING, "2/3 pods started")
        await extended.set_capacity(node, 3)
        second = leader_of(0, await scenario.until_running(3))["metadata"]["uid"]
        assert first != second

        def of_second(verdict: Verdict) -> bool:
            return bool(verdict.generation.uid == second)

        await scenario.until_verdict(of_second, config_map=LWS.config_map_name("gang-0"))
        await scenario.check_order(3, PODS_OF_GANG)
        await until_condition(scenario, names.REASON_STARTED)


async def test_a_rolling_update_recreates_each_group_and_none_waits_for_another(scenario: Scenario) -> None:
    async with lws_standin.controller(scenario.client, scenario.namespace):
        await scenario.apply(leader_worker_set(scenario, {}, size=2, replicas=2))
        old = {pod["metadata"]["uid"] for pod in await scenario.until_running(4)}
        await until_condition(scenario, names.REASON_STARTED)
        change = {"op": "replace", "path": "/spec/leaderWorkerTemplate/workerTemplate/spec/containers/0/env/0/value"}
        body = [change | {"value": "2"}]
        await scenario.client.patch(LEADER_WORKER_SETS, "gang", scenario.namespace, body=body, patch=PatchType.JSON)

        def renewed(pods: list[Json]) -> bool:
            new = [pod for pod in pods if pod["metadata"]["uid"] not in old and predicates.runs(pod)]
            return [pod["spec"]["containers"][0]["env"][0]["value"] for pod in new] == ["2"] * 4

        await scenario.until(renewed)
        await until_condition(scenario, names.REASON_STARTED)


async def test_at_the_timeout_a_group_fails_together_and_the_missing_worker_is_named(
    scenario: Scenario, nodes: Nodes
) -> None:
    async with (
        lws_standin.controller(scenario.client, scenario.namespace),
        room_for(scenario, nodes, 2) as (extended, _),
    ):
        config = f'{{"{names.TIMEOUT_FIELD}": {LIMIT}}}'
        await scenario.apply(leader_worker_set(scenario, extended.request, size=3, config=config))
        await scenario.until_held(2)
        await scenario.until(lambda _: len(scenario.ends) >= 2)
        assert {end["exitCode"] for end in scenario.ends.values()} == {names.EXIT_TIMED_OUT}
        (late,) = set(scenario.seen) - set(scenario.ends)
        slot = "leader" if late == "gang-0" else f"worker {late.removeprefix('gang-0-')}"
        await until_condition(scenario, names.REASON_TIMED_OUT, f"({slot})")


async def test_pods_of_a_set_without_the_annotation_are_not_touched(scenario: Scenario) -> None:
    async with lws_standin.controller(scenario.client, scenario.namespace):
        made = leader_worker_set(scenario, {}, size=2)
        del made["metadata"]["annotations"]
        await scenario.apply(made)
        await scenario.until_running(2)
        for pod in (await scenario.client.list(PODS, scenario.namespace))["items"]:
            assert names.GATED not in pod["metadata"]["labels"]
            assert not pod["spec"].get("initContainers")
