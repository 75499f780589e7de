"""The JobSet CRD is extended on a real API server without its owner noticing (A2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from controllers.barrier.crd_patcher import CrdNotExtendable, CrdOutcome, extend_crd, retract_crd
from jobset_gate.barrier import crd as crd_schema
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import BadRequest, Conflict, Invalid
from jobset_gate.kube.resources import CRDS
from jobset_gate_demo.fake import jobset_crd
from tests.fakes.eventually import eventually
from tests.fakes.jobset_like_crd import JobSetLikeCrd

Json = dict[str, Any]


@pytest.fixture
async def crd(client: Client) -> AsyncIterator[JobSetLikeCrd]:
    """Applied by its owner on the server's side, and served."""
    like = JobSetLikeCrd()
    await apply(client, like)
    await jobset_crd.until_served(client, like.name, like.resource)
    yield like
    await client.delete(CRDS, like.name)


async def apply(client: Client, crd: JobSetLikeCrd) -> Json:
    """As `kubectl apply --server-side` of the owner does: no force."""
    return await client.patch(CRDS, crd.name, body=crd.manifest, patch=PatchType.APPLY, field_manager="owner")


def _config(namespace: str, **config: object) -> Json:
    return {
        "metadata": {"name": "x", "namespace": namespace},
        "spec": {"suspend": True, "groupSchedulingConfig": config},
    }


async def _keeps_field(client: Client, crd: JobSetLikeCrd, namespace: str) -> bool:
    body = _config(namespace, timeoutAfterSeconds=300, targetReplicatedJobs=["a"])
    made = await client.create(crd.resource, body, dry_run=True)
    return "groupSchedulingConfig" in made["spec"]


def _owners(crd: Json) -> list[Json]:
    """The managedFields without the status part, which the API server itself writes when it likes."""
    return [entry for entry in crd["metadata"]["managedFields"] if not entry.get("subresource")]


async def test_the_field_is_kept_once_the_crd_is_extended(client: Client, crd: JobSetLikeCrd, namespace: str) -> None:
    assert not await _keeps_field(client, crd, namespace)
    assert await extend_crd(client, name=crd.name) is CrdOutcome.EXTENDED
    stored = await client.get(CRDS, crd.name)
    assert crd_schema.is_extended(stored)
    await eventually(lambda: _keeps_field(client, crd, namespace))
    one, two = stored["spec"]["versions"]
    assert "groupSchedulingConfig" not in one["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    assert "groupSchedulingConfig" in two["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    for bad in ({"timeoutAfterSeconds": 0}, {"timeoutAfterSeconds": "5"}, {"targetReplicatedJobs": [1]}):
        with pytest.raises((Invalid, BadRequest)):
            await client.create(crd.resource, _config(namespace, **bad), dry_run=True)
    nulls = _config(namespace, timeoutAfterSeconds=None, targetReplicatedJobs=None)
    made = await client.create(crd.resource, nulls, dry_run=True)
    assert made["spec"]["groupSchedulingConfig"] == {"timeoutAfterSeconds": None, "targetReplicatedJobs": None}


async def test_nobody_owns_anything_else_than_before(client: Client, crd: JobSetLikeCrd) -> None:
    before = _owners(await client.get(CRDS, crd.name))
    await extend_crd(client, name=crd.name)
    extended = await client.get(CRDS, crd.name)
    assert _owners(extended) == before
    assert await extend_crd(client, name=crd.name) is CrdOutcome.ALREADY_THERE
    again = await client.get(CRDS, crd.name)
    assert again["metadata"]["generation"] == extended["metadata"]["generation"], "nothing was written"
    assert _owners(again) == before


async def test_a_crash_between_the_patches_is_healed_by_the_next_call(client: Client, crd: JobSetLikeCrd) -> None:
    """Without the second patch the owner would conflict: the reason for all the trouble."""
    before = _owners(await client.get(CRDS, crd.name))
    operations = crd_schema.extension(await client.get(CRDS, crd.name))
    await client.patch(CRDS, crd.name, body=operations, patch=PatchType.JSON, field_manager=crd_schema.MANAGER)
    with pytest.raises(Conflict):
        await apply(client, crd)
    assert await extend_crd(client, name=crd.name) is CrdOutcome.ALREADY_THERE
    after = _owners(await client.get(CRDS, crd.name))
    assert [entry["manager"] for entry in after] == ["owner"]
    assert after[0]["fieldsV1"] == before[0]["fieldsV1"]
    await apply(client, crd)


async def test_a_crd_whose_owner_updates_it_is_extended_too(client: Client) -> None:
    """As `kubectl create`, Helm 3 and client-side apply do."""
    like = JobSetLikeCrd()
    await client.create(CRDS, like.manifest, field_manager="owner")
    try:
        before = _owners(await client.get(CRDS, like.name))
        assert await extend_crd(client, name=like.name) is CrdOutcome.EXTENDED
        assert _owners(await client.get(CRDS, like.name)) == before
    finally:
        await client.delete(CRDS, like.name)


async def test_several_at_once_do_not_get_in_each_others_way(client: Client, crd: JobSetLikeCrd) -> None:
    before = _owners(await client.get(CRDS, crd.name))
    outcomes = await asyncio.gather(*(extend_crd(client, name=crd.name) for _ in range(4)))
    assert CrdOutcome.EXTENDED in outcomes
    await extend_crd(client, name=crd.name)
    stored = await client.get(CRDS, crd.name)
    assert crd_schema.is_extended(stored)
    assert [entry["fieldsV1"] for entry in _owners(stored)] == [entry["fieldsV1"] for entry in before]


async def test_removing_leaves_the_crd_as_its_owner_made_it(client: Client, crd: JobSetLikeCrd) -> None:
    before = await client.get(CRDS, crd.name)
    await extend_crd(client, name=crd.name)
    assert await retract_crd(client, name=crd.name) is CrdOutcome.REMOVED
    after = await client.get(CRDS, crd.name)
    assert after["spec"] == before["spec"]
    assert _owners(after) == _owners(before)
    assert await retract_crd(client, name=crd.name) is CrdOutcome.NOT_THERE


async def test_a_crd_without_the_version_we_know_is_an_error(client: Client) -> None:
    like = JobSetLikeCrd()
    manifest = like.manifest
    manifest["spec"]["versions"][1]["name"] = "v1beta7"
    await client.create(CRDS, manifest)
    try:
        with pytest.raises(CrdNotExtendable, match="v1alpha2"):
            await extend_crd(client, name=like.name)
    finally:
        await client.delete(CRDS, like.name)
