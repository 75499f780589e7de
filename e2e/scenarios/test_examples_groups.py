"""The pod groups of examples/groups: none is bound while not all that a group needs fits, then all meet."""

from collections.abc import Callable
from typing import Any

import pytest

from e2e import example_overlays, example_programs, groups, predicates
from e2e.example_overlays import PROGRAM, PYTHON, Overlay
from e2e.nodes import Nodes
from e2e.scenario import Scenario

HOST = "meeting"


@pytest.mark.parametrize("example", example_programs.GROUPS)
async def test_its_pods_are_placed_together(
    scenario: Scenario, nodes: Nodes, example: str, say: Callable[[str], None]
) -> None:
    near, far = (await nodes.workers())[:2]
    play = example_programs.GROUPS[example]
    async with nodes.extended_resource(scenario.namespace) as extended:
        plain = Overlay(scenario.environment.image, scenario.namespace, extended.request, play.commands)
        many = example_overlays.with_extended_resource(plain.over(one) for one in example_overlays.documents(example))
        address = await meeting(scenario, many)
        commands = {name: said.replace("$HOST", address) for name, said in play.commands.items()}
        overlay = Overlay(scenario.environment.image, scenario.namespace, extended.request, commands)
        await extended.set_capacity(near, (play.minimum or many) - 1)
        await scenario.apply(*(overlay.over(one) for one in example_overlays.documents(example)))
        await scenario.until(lambda pods: len(held(pods)) == many == len(members(pods)))
        await extended.set_capacity(far, many - (play.minimum or many) + 1)
        await scenario.until(lambda pods: ended(pods, HOST) == 0)
        pods = await scenario.until(lambda pods: all(ended(pods, predicates.name_of(one)) is not None for one in pods))
    assert {ended(pods, predicates.name_of(one)) for one in pods} == {0}
    say(f"examples/{example}: {many} pods were placed together; {example_overlays.PRINTED}")


async def meeting(scenario: Scenario, many: int) -> str:
    """The address of a pod that waits for so many to be there at once."""
    container = {
        "name": "main",
        "image": scenario.environment.image,
        "command": [PYTHON, "-c", PROGRAM.read_text(), "host", str(example_programs.PORT), str(many)],
    }
    spec = {"restartPolicy": "Never", "containers": [container]}
    await scenario.apply({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": HOST}, "spec": spec})
    (pod,) = await scenario.until(lambda pods: any(predicates.runs(pod) for pod in pods))
    return str(pod["status"]["podIP"])


def members(pods: list[predicates.Json]) -> list[predicates.Json]:
    return [pod for pod in pods if predicates.name_of(pod) != HOST]


def held(pods: list[predicates.Json]) -> list[predicates.Json]:
    return [pod for pod in pods if groups.held(pod)]


def ended(pods: list[predicates.Json], name: str) -> Any:
    """The exit code of that pod's main container; None while it has none."""
    for pod in pods:
        for status in (pod["status"].get("containerStatuses") or ()) if predicates.name_of(pod) == name else ():
            return (status["state"].get("terminated") or {}).get("exitCode")
    return None
