"""Owners are read seldom, and what they do not say is not guessed (G3, CannotGather)."""

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from controllers.podgroups.owners import CACHE_SECONDS, MAX_OWNERS, OwnerCapacities
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import JOBS, JOBSETS
from jobset_gate.podgroups.model import Flavor, PodGroupKey
from jobset_gate.podgroups.snapshot import ControllerRef, GroupSnapshot
from jobset_gate_demo.fake import jobset_crd, manifests
from jobset_gate_demo.fake.apiserver import ApiServer
from tests.fakes.podgroups import sources
from tests.fakes.podgroups.objects import pod
from tests.fakes.podgroups.snapshots import group_snapshot

KEY = PodGroupKey(flavor=Flavor.ALIBABA, namespace="default", name="ring")
LABELS = sources.alibaba("ring")
MAIN = {"name": "main", "image": "main"}
TEMPLATE = {"metadata": {"labels": LABELS}, "spec": {"restartPolicy": "Never", "containers": [MAIN]}}


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ApiServer() as server, Client(Access(server=server.url)) as opened:
        yield opened


def group(*makers: ControllerRef | None, jobset: str = "") -> GroupSnapshot:
    """One pod of each."""
    seen = group_snapshot(*(pod(f"p{number}", of=KEY, labels=LABELS) for number in range(len(makers))), of=KEY)
    members = zip(seen.members, makers, strict=True)
    owned = tuple(msgspec.structs.replace(it, controller=owner, jobset=jobset) for it, owner in members)
    return msgspec.structs.replace(seen, members=owned)


def maker(obj: dict[str, Any]) -> ControllerRef:
    meta = obj["metadata"]
    return ControllerRef(api_version=obj["apiVersion"], kind=obj["kind"], name=meta["name"], uid=meta["uid"])


async def a_job(client: Client, name: str = "work", **meta: Any) -> dict[str, Any]:
    body = {"metadata": {"name": name, **meta}, "spec": {"parallelism": 3, "completions": 3, "template": TEMPLATE}}
    return await client.create(JOBS, body, "default")


async def test_a_job_of_a_jobset_leads_to_the_jobset_whatever_the_number_of_its_jobs(client: Client) -> None:
    await jobset_crd.install(client)
    workers = manifests.replicated_job(name="w", parallelism=2, pod_metadata={"labels": LABELS})
    jobset = await client.create(JOBSETS, manifests.jobset("train", replicated_jobs=[workers]), "default")
    above = {"apiVersion": jobset["apiVersion"], "kind": "JobSet", "name": "train", "controller": True}
    meta = {"ownerReferences": [above | {"uid": jobset["metadata"]["uid"]}]}
    jobs = [await a_job(client, f"train-{n}", **meta) for n in range(MAX_OWNERS + 1)]
    found = await OwnerCapacities(client).capacities_of(group(*map(maker, jobs), jobset="train"))
    assert [it.description for it in found] == ["JobSet train (w) makes 2"]


async def test_a_missing_or_foreign_owner_is_unknown(client: Client) -> None:
    gone = ControllerRef(api_version="batch/v1", kind="Job", name="gone", uid="u")
    other = ControllerRef(api_version="kubeflow.org/v1", kind="TFJob", name="net", uid="v")
    found = await OwnerCapacities(client).capacities_of(group(gone, other, None))
    assert {it.kind: it.max_pods for it in found} == {"Job": None, "TFJob": None, "Pod": None}
    crowd = [
        ControllerRef(api_version="batch/v1", kind="Job", name=f"j{n}", uid=f"u{n}") for n in range(MAX_OWNERS + 1)
    ]
    assert await OwnerCapacities(client).capacities_of(group(*crowd)) == ()


async def test_an_answer_is_believed_for_a_while(client: Client) -> None:
    now = 0.0
    job = await a_job(client)
    owners, seen = OwnerCapacities(client, monotonic=lambda: now), group(maker(job))
    assert [it.max_pods for it in await owners.capacities_of(seen)] == [3]
    await client.patch(JOBS, "work", "default", body={"spec": {"parallelism": 2}}, patch=PatchType.MERGE)
    assert [it.max_pods for it in await owners.capacities_of(seen)] == [3]
    now += CACHE_SECONDS
    assert [it.max_pods for it in await owners.capacities_of(seen)] == [2]
