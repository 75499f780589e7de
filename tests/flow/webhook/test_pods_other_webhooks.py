"""Other webhooks that change pods, before and after ours: what is stored is held for the group that is stored."""

from collections.abc import AsyncIterator, Callable

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.model import Flavor, Format, PodGroupKey, group_label
from tests.fakes.admission_server import registered_for_pods
from tests.fakes.grouped_pods import Json, gates, pod
from tests.fakes.other_webhook import another_webhook
from tests.fakes.podgroups.sources import PLUGINS
from webhook.registration import POD_RULE

POINTER = "/metadata/labels/" + PLUGINS.replace("/", "~1")


@pytest.fixture(autouse=True)
async def _webhook(client: Client, namespace: str) -> AsyncIterator[None]:
    async with registered_for_pods(client, namespace):
        yield


def renaming(name: str) -> Callable[[Json], list[Json]]:
    """Puts every pod into that group."""

    def operations(made: Json) -> list[Json]:
        if made["metadata"].get("labels", {}).get(PLUGINS) == name:
            return []
        there = "labels" in made["metadata"]
        value = {"op": "add", "path": POINTER, "value": name}
        return [value] if there else [{"op": "add", "path": "/metadata/labels", "value": {PLUGINS: name}}]

    return operations


async def stored(
    client: Client, namespace: str, order: str, *, operations: Callable[[Json], list[Json]], given: Json
) -> Json:
    """What becomes of a pod while that webhook is called as well; a dry run tells when it is."""
    async with another_webhook(client, namespace, order, operations, rule=POD_RULE):
        while True:
            made = await client.create(PODS, given, namespace, dry_run=True)
            if not operations(made):
                return made


def held_for(made: Json, namespace: str, name: str) -> bool:
    key = PodGroupKey(flavor=Flavor.SCHEDULER_PLUGINS, namespace=namespace, name=name)
    labels = made["metadata"]["labels"]
    return (labels[PLUGINS], labels[names.POD_GROUP_LABEL]) == (name, group_label(key)) and gates(made) == [
        names.POD_GROUP_GATE
    ]


async def test_a_group_that_an_earlier_one_names_is_held(client: Client, namespace: str) -> None:
    made = await stored(client, namespace, "aa-queues", operations=renaming("given"), given=pod())
    assert held_for(made, namespace, "given")


async def test_a_group_that_a_later_one_changes_is_followed_until_the_pod_is_stored(
    client: Client, namespace: str
) -> None:
    """The webhook is called again, and replaces the first label."""
    first = pod(Format.SCHEDULER_PLUGINS, "first")
    made = await stored(client, namespace, "zzz-last", operations=renaming("other"), given=first)
    assert held_for(made, namespace, "other")
