"""A3, A5: the barrier and its epoch among the changes that other webhooks make to the same JobSet."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import JOBSETS, PODS
from jobset_gate.podgroups.model import Flavor, Format, PodGroupKey, group_label
from tests.fakes.admission_server import registered, registered_for_pods
from tests.fakes.grouped_pods import gates, pod
from tests.fakes.jobsets import Json, changed, epoch, jobset, pod_spec
from tests.fakes.other_webhook import another_webhook
from tests.fakes.podgroups.sources import PLUGINS
from webhook.registration import POD_RULE

INITS = "/spec/replicatedJobs/0/template/spec/template/spec/initContainers"
QUEUE = "kueue.x-k8s.io/queue-name"
MESH = {"name": "mesh", "image": "mesh:1"}


def gang(namespace: str, config: Any = None) -> Json:
    return changed(jobset(config=config), namespace, "metadata", "namespace")


@asynccontextmanager
async def called(
    client: Client, namespace: str, name: str, operations: Callable[[Json], list[Json]]
) -> AsyncIterator[None]:
    """Ours and another webhook, once the API server calls it: only a request tells when it has read of it."""
    asked: list[Json] = []

    def asking(it: Json) -> list[Json]:
        asked.append(it)
        return operations(it)

    probe = gang(namespace, config=False)
    async with registered(client, namespace), another_webhook(client, namespace, name, asking):
        while not asked:
            await client.create(JOBSETS, probe, namespace, dry_run=True)
        yield


def init_containers(it: Json) -> list[Json]:
    return list(pod_spec(it).get("initContainers") or [])


async def test_a_suspension_that_kueues_webhook_decides_upon_starts_the_next_epoch(
    client: Client, namespace: str
) -> None:
    """The user's own write changes a label only, which alone would not even be sent to us."""

    def suspend(it: Json) -> list[Json]:
        queued = QUEUE in it["metadata"].get("labels", {})
        return [{"op": "add", "path": "/spec/suspend", "value": True}] if queued else []

    async with called(client, namespace, "kueue", suspend):
        made = await client.create(JOBSETS, gang(namespace), namespace)
        label = {"metadata": {"labels": {QUEUE: "q"}}}
        after = await client.patch(JOBSETS, "gang", namespace, body=label, patch=PatchType.MERGE)
    assert (epoch(made), epoch(after)) == ("0", "1")
    assert after["spec"]["suspend"] is True


@pytest.mark.parametrize("name", ["a-mesh", "zzz-mesh"])
async def test_the_barrier_is_behind_a_meshs_init_container_in_either_order_of_calls(
    client: Client, namespace: str, name: str
) -> None:
    def append(it: Json) -> list[Json]:
        entries = init_containers(it)
        return [] if MESH["name"] in str(entries) else [{"op": "add", "path": INITS, "value": [*entries, MESH]}]

    async with called(client, namespace, name, append):
        made = await client.create(JOBSETS, gang(namespace), namespace)
    assert [it["name"] for it in init_containers(made)] == ["mesh", names.BARRIER_CONTAINER]


async def test_a_barrier_that_another_webhook_insists_on_taking_out_is_refused(client: Client, namespace: str) -> None:
    """It is called after ours in the second round too, so that only the validating webhook can tell."""

    def strip(it: Json) -> list[Json]:
        return [{"op": "replace", "path": INITS, "value": []}] if init_containers(it) else []

    async with called(client, namespace, "zzz-strict-policy", strip):
        with pytest.raises(Invalid, match="no start barrier"):
            await client.create(JOBSETS, gang(namespace), namespace)


# --- Pods of groups ---------------------------------------------------------------------------------------------------


def into_another_group(made: Json) -> list[Json]:
    """Also a pod without labels."""
    labels = made["metadata"].get("labels", {})
    change = {"op": "add", "path": "/metadata/labels", "value": labels | {PLUGINS: "other"}}
    return [] if labels.get(PLUGINS) == "other" else [change]


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
