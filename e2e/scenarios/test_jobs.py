"""A plain Indexed Job as a gang, under the real Job controller: start, timeout, resumption and failed index."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from e2e import example_overlays, example_programs, gangs, predicates
from e2e.example_overlays import Overlay
from e2e.extended_resource import ExtendedResource
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from e2e.scenarios.test_examples_groups import HOST, ended, meeting, members
from jobset_gate import names
from jobset_gate.barrier.model import VerdictKind
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBS
from jobset_gate.sources.table import JOB

CONFIG_MAP: Final = JOB.config_map_name("gang")
LIMIT: Final = 25
"""Seconds in which, on a busy machine too, all pods that are bound start."""

Json = dict[str, Any]


@asynccontextmanager
async def room_for(scenario: Scenario, nodes: Nodes, many: int) -> AsyncIterator[tuple[ExtendedResource, str]]:
    """A node with room for so many pods."""
    node = (await nodes.workers())[0]
    async with nodes.extended_resource(scenario.namespace) as extended:
        await extended.set_capacity(node, many)
        yield extended, node


def job(scenario: Scenario, resources: Json, work: str = gangs.WORK, config: str = "{}", **spec: Any) -> Json:
    """Four indexes."""
    pod = {
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 1,
        "containers": [gangs.main(scenario.image, work=work, resources=resources)],
    }
    fields = {"completionMode": "Indexed", "completions": 4, "parallelism": 4, "backoffLimit": 0}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "gang", "annotations": {names.CONFIG: config}},
        "spec": fields | {"template": {"spec": pod}} | spec,
    }


async def until_condition(scenario: Scenario, reason: str, text: str = "") -> Json:
    """The Job's condition GroupStarted, once it has this reason and contains this text."""

    def matches(one: Json) -> bool:
        found = predicates.condition(one)
        return found.get("reason") == reason and text in found["message"]

    (found,) = await scenario.until_any(JOBS, matches)
    return predicates.condition(found)


async def suspend(scenario: Scenario, *, suspended: bool) -> None:
    body = {"spec": {"suspend": suspended}}
    await scenario.client.patch(JOBS, "gang", scenario.namespace, body=body, patch=PatchType.MERGE)


async def test_its_pods_start_together_and_after_a_resumption_again(scenario: Scenario, nodes: Nodes) -> None:
    async with room_for(scenario, nodes, 3) as (extended, node):
        await scenario.apply(job(scenario, extended.request))
        await scenario.until_held(3)
        await until_condition(scenario, names.REASON_WAITING, "3/4 pods started")
        await extended.set_capacity(node, 4)
        await scenario.until_running(4)
        await scenario.kubectl("wait", "--for=condition=GroupStarted", "job/gang", "--timeout=60s")
        await suspend(scenario, suspended=True)
        await scenario.until(lambda pods: pods == [])
        await scenario.until_any(JOBS, lambda one: "startTime" not in one["status"])
        await extended.set_capacity(node, 3)
        await suspend(scenario, suspended=False)
        await scenario.until_held(3)
        await until_condition(scenario, names.REASON_WAITING, "3/4 pods started")
        await extended.set_capacity(node, 4)
        await scenario.until_running(4)
        verdict = await scenario.until_verdict(lambda it: it.generation.epoch == 1, config_map=CONFIG_MAP)
        assert (verdict.kind, verdict.generation.attempt) == (VerdictKind.RELEASE, 0)


async def test_at_the_timeout_it_fails_together_and_the_missing_index_is_named(
    scenario: Scenario, nodes: Nodes
) -> None:
    async with room_for(scenario, nodes, 3) as (extended, _):
        await scenario.apply(job(scenario, extended.request, config=f'{{"{names.TIMEOUT_FIELD}": {LIMIT}}}'))
        await scenario.until_held(3)
        verdict = await scenario.until_verdict(config_map=CONFIG_MAP)
        assert verdict.kind is VerdictKind.TIMEOUT
        await scenario.until(lambda _: len(scenario.ends) >= 3)
        late = {pod["metadata"]["annotations"][names.JOB_COMPLETION_INDEX] for pod in scenario.seen.values()} - {
            scenario.seen[name]["metadata"]["annotations"][names.JOB_COMPLETION_INDEX] for name in scenario.ends
        }
        for end in scenario.ends.values():
            assert end["exitCode"] == names.EXIT_TIMED_OUT
            assert "3/4 pods started; missing: 1 pod: Unscheduled" in end["message"]
            assert all(f"({index})" in end["message"] for index in late)
        (failed,) = await scenario.until_any(JOBS, predicates.failed)
        assert predicates.condition(failed)["reason"] == names.REASON_TIMED_OUT


async def test_an_index_that_fails_for_good_ends_the_wait_at_once(scenario: Scenario, nodes: Nodes) -> None:
    """Index 2 fails in an init container of its own, before the barrier."""
    fails = gangs.main(scenario.image, name="check", work="test $JOB_COMPLETION_INDEX != 2")
    async with room_for(scenario, nodes, 3) as (extended, _):
        made = job(scenario, extended.request, backoffLimitPerIndex=0, maxFailedIndexes=4)
        del made["spec"]["backoffLimit"]
        made["spec"]["template"]["spec"]["initContainers"] = [fails]
        await scenario.apply(made)
        verdict = await scenario.until_verdict(config_map=CONFIG_MAP)
        assert (verdict.kind, verdict.cause) == (VerdictKind.TIMEOUT, names.REASON_INDEX_FAILED)
        assert "(2)" in verdict.message


@pytest.mark.parametrize("example", example_programs.JOBS)
async def test_the_pods_of_the_example_meet(scenario: Scenario, nodes: Nodes, example: str) -> None:
    near, far = (await nodes.workers())[:2]
    play = example_programs.JOBS[example]
    documents = example_overlays.documents(example)
    async with nodes.extended_resource(scenario.namespace) as extended:
        plain = Overlay(scenario.environment.image, scenario.namespace, extended.request, play.commands)
        many = example_overlays.with_extended_resource(plain.over(one) for one in documents)
        address = await meeting(scenario, many)
        commands = {name: text.replace("$HOST", address) for name, text in play.commands.items()}
        overlay = Overlay(scenario.environment.image, scenario.namespace, extended.request, commands)
        await extended.set_capacity(near, many - 1)
        await scenario.apply(*(overlay.over(one) for one in documents))
        await scenario.until(lambda pods: sum(map(predicates.held, members(pods))) == many - 1)
        await extended.set_capacity(far, 1)
        await scenario.until(lambda pods: ended(pods, HOST) == 0)
