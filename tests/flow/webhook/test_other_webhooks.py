"""A3, A5: the barrier and its epoch among the changes that other webhooks make to the same JobSet."""

from collections.abc import AsyncIterator

import pytest

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError
from jobset_gate.kube.resources import JOBSETS
from tests.fakes.admission_server import registered
from tests.fakes.jobsets import Json, dig, epoch, jobset, pod_spec
from tests.fakes.other_webhook import another_webhook

TEMPLATE = "/spec/replicatedJobs/0/template/spec/template"
QUEUE = "kueue.x-k8s.io/queue-name"


@pytest.fixture(autouse=True)
async def _webhook(client: Client, namespace: str) -> AsyncIterator[None]:
    async with registered(client, namespace):
        yield


async def until_asked(client: Client, namespace: str, happened: list[Json]) -> None:
    """Nothing tells when an API server has read a new configuration but a request that comes to it."""
    while not happened:
        probe = jobset(name="probe", config=False)
        probe["metadata"]["namespace"] = namespace
        await client.create(JOBSETS, probe, namespace, dry_run=True)


async def created(client: Client, namespace: str, manifest: Json) -> Json:
    manifest["metadata"]["namespace"] = namespace
    return await client.create(JOBSETS, manifest, namespace)


async def test_a_suspension_that_kueues_webhook_decides_upon_starts_the_next_epoch(
    client: Client, namespace: str
) -> None:
    """The user's own write changes a label only, which alone would not even be sent to us."""
    asked: list[Json] = []

    def suspend(it: Json) -> list[Json]:
        asked.append(it)
        queued = QUEUE in it["metadata"].get("labels", {})
        return [{"op": "add", "path": "/spec/suspend", "value": True}] if queued else []

    made = await created(client, namespace, jobset())
    async with another_webhook(client, namespace, "kueue", suspend):
        await until_asked(client, namespace, asked)
        label = {"metadata": {"labels": {QUEUE: "q"}}}
        after = await client.patch(JOBSETS, "gang", namespace, body=label, patch=PatchType.MERGE)
    assert (epoch(made), epoch(after)) == ("0", "1")
    assert after["spec"]["suspend"] is True


@pytest.mark.parametrize("name", ["a-mesh", "zzz-mesh"])
async def test_the_barrier_is_behind_a_meshs_init_container_in_either_order_of_calls(
    client: Client, namespace: str, name: str
) -> None:
    asked: list[Json] = []

    def append(it: Json) -> list[Json]:
        asked.append(it)
        entries = dig(it, "spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "initContainers")
        if any(entry["name"] == "mesh" for entry in entries or []):
            return []
        mesh = {"name": "mesh", "image": "mesh:1"}
        if entries is None:
            return [{"op": "add", "path": f"{TEMPLATE}/spec/initContainers", "value": [mesh]}]
        return [{"op": "add", "path": f"{TEMPLATE}/spec/initContainers/-", "value": mesh}]

    async with another_webhook(client, namespace, name, append):
        await until_asked(client, namespace, asked)
        made = await created(client, namespace, jobset())
    assert [it["name"] for it in pod_spec(made)["initContainers"]] == ["mesh", names.BARRIER_CONTAINER]


async def test_a_barrier_that_another_webhook_insists_on_taking_out_is_refused(client: Client, namespace: str) -> None:
    """It is called after ours in the second round too, so that only the validating webhook can tell."""
    asked: list[Json] = []

    def strip(it: Json) -> list[Json]:
        asked.append(it)
        entries = dig(it, "spec", "replicatedJobs", 0, "template", "spec", "template", "spec", "initContainers")
        return [{"op": "replace", "path": f"{TEMPLATE}/spec/initContainers", "value": []}] if entries else []

    async with another_webhook(client, namespace, "zzz-strict-policy", strip):
        await until_asked(client, namespace, asked)
        with pytest.raises(ApiError, match="no start barrier") as refusal:
            await created(client, namespace, jobset())
    assert refusal.value.status == 422
