"""Other webhooks that change pods, before and after ours: what is stored is held for the group that is stored."""

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


def into_another_group(made: Json) -> list[Json]:
    """Also a pod without labels."""
    labels = made["metadata"].get("labels", {})
    changed = {"op": "add", "path": "/metadata/labels", "value": labels | {PLUGINS: "other"}}
    return [] if labels.get(PLUGINS) == "other" else [changed]


@pytest.mark.parametrize(
    ("name", "given"),
    [("aa-queues", pod()), ("zzz-last", pod(Format.SCHEDULER_PLUGINS, "first"))],
    ids=["called before ours", "called after ours, which is called again"],
)
async def test_a_pod_is_held_for_the_group_that_is_stored(
    client: Client, namespace: str, name: str, given: Json
) -> None:
    async with (
        registered_for_pods(client, namespace),
        another_webhook(client, namespace, name, into_another_group, rule=POD_RULE),
    ):
        made = given
        while into_another_group(made):  # a dry run tells when the other one is called
            made = await client.create(PODS, given, namespace, dry_run=True)
    key = PodGroupKey(flavor=Flavor.SCHEDULER_PLUGINS, namespace=namespace, name="other")
    assert made["metadata"]["labels"][names.POD_GROUP_LABEL] == group_label(key)
    assert gates(made) == [names.POD_GROUP_GATE]
