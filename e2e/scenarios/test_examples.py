"""The JobSets of examples/, a rendezvous for their program: the pods meet at the addresses that the examples name."""

from collections.abc import Callable
from typing import Final

import pytest

from e2e import example_overlays, example_programs, predicates, rendezvous
from e2e.example_overlays import Overlay
from e2e.extended_resource import ExtendedResource
from e2e.nodes import Nodes
from e2e.scenario import Scenario
from jobset_gate import names
from jobset_gate.kube.resources import SECRETS

HURRY: Final = "5"


@pytest.mark.parametrize("example", example_programs.JOBSETS)
async def test_its_pods_meet_when_the_last_one_has_come(
    scenario: Scenario, nodes: Nodes, example: str, say: Callable[[str], None]
) -> None:
    near, far = (await nodes.workers())[:2]
    async with nodes.extended_resource(scenario.namespace) as extended:
        made = await laid_out(scenario, extended, example)
        many = example_overlays.with_extended_resource(made)
        await extended.set_capacity(near, many - 1)
        await scenario.apply(*made)
        await scenario.until_held(many - 1)
        await extended.set_capacity(far, 1)
        jobset = await scenario.until_jobset(over)
    assert predicates.completed(jobset), jobset["status"]
    assert not jobset["status"].get("restarts")
    say(f"examples/{example}: {many} pods have met; {example_overlays.PRINTED}")


async def test_without_the_gate_they_miss_each_other(scenario: Scenario, nodes: Nodes) -> None:
    """What the meeting is worth: the same pods, but nobody holds the early ones."""
    near, _ = (await nodes.workers())[:2]
    async with nodes.extended_resource(scenario.namespace) as extended:
        made = await laid_out(scenario, extended, "pytorch.yaml", patience=HURRY)
        del made[-1]["spec"][names.CONFIG_FIELD]
        await extended.set_capacity(near, example_overlays.with_extended_resource(made) - 1)
        await scenario.apply(*made)
        await scenario.until(lambda pods: any(missed_a_peer(pod) for pod in pods))


async def test_the_api_server_takes_all_examples_as_they_are(scenario: Scenario) -> None:
    """With the kinds and webhooks of an installation; nothing is stored."""
    files = (f"--filename={example_overlays.FOLDER / it}" for it in example_programs.ALL)
    said = await scenario.kubectl_as_is("apply", "--dry-run=server", *files)
    assert len(said.splitlines()) == sum(len(example_overlays.documents(it)) for it in example_programs.ALL)


async def laid_out(
    scenario: Scenario, extended: ExtendedResource, example: str, patience: str = ""
) -> list[predicates.Json]:
    """The example's objects for this namespace, and the secret that it needs."""
    play = example_programs.ALL[example]
    if play.secret:
        secret = {"metadata": {"name": play.secret, "namespace": scenario.namespace}, "stringData": {"id_rsa": "none"}}
        await scenario.client.create(SECRETS, secret)
    overlay = Overlay(
        scenario.environment.image, scenario.namespace, extended.request, play.commands, play.pods_per_job, patience
    )  # fmt: skip
    return [overlay.over(one) for one in example_overlays.documents(example)]


def missed_a_peer(pod: predicates.Json) -> bool:
    """Its rendezvous has ended as one does that misses a peer."""
    states = [status["state"] for status in pod["status"].get("containerStatuses") or ()]
    return any((state.get("terminated") or {}).get("exitCode") == rendezvous.MISSED for state in states)


def over(jobset: predicates.Json) -> bool:
    """Whatever may have become of it."""
    return (
        predicates.completed(jobset) or predicates.failed(jobset) or bool((jobset.get("status") or {}).get("restarts"))
    )
