"""Owners are read seldom, and what they do not say is not guessed (G3, CannotGather)."""

from __future__ import annotations

from typing import Any

import msgspec

from controllers.podgroups.owners import CACHE_SECONDS, MAX_OWNERS, OwnerCapacities
from jobset_gate.kube.resources import JOBS, JOBSETS
from jobset_gate.podgroups.model import Flavor
from jobset_gate.podgroups.snapshot import ControllerRef, GroupSnapshot
from jobset_gate_demo.fake import manifests
from tests.fakes.podgroups.cluster import InMemoryCluster
from tests.fakes.podgroups.objects import key, pod
from tests.fakes.podgroups.snapshots import group_snapshot
from tests.fakes.podgroups.sources import alibaba
from tests.fakes.wire_objects import owner

KEY = key("ring", Flavor.ALIBABA)
LABELS = alibaba("ring")


def group(*makers: ControllerRef | None, jobset: str = "") -> GroupSnapshot:
    """One pod of each."""
    seen = group_snapshot(*(pod(f"p{number}", of=KEY, labels=LABELS) for number in range(len(makers))), of=KEY)
    members = zip(seen.members, makers, strict=True)
    owned = tuple(msgspec.structs.replace(it, controller=owner, jobset=jobset) for it, owner in members)
    return msgspec.structs.replace(seen, members=owned)


def maker(name: str, kind: str = "Job", api: str = "batch/v1") -> ControllerRef:
    return ControllerRef(api_version=api, kind=kind, name=name, uid=f"uid-{name}")


def store_job(cluster: InMemoryCluster, name: str, parallelism: int, **meta: Any) -> None:
    spec = {"parallelism": parallelism, "completions": 3, "template": {"metadata": {"labels": LABELS}}}
    cluster.put(JOBS, {"metadata": {"name": name, "namespace": "team", **meta}, "spec": spec})


async def test_a_job_of_a_jobset_leads_to_the_jobset_whatever_the_number_of_its_jobs(cluster: InMemoryCluster) -> None:
    workers = manifests.replicated_job(name="w", parallelism=2, pod_metadata={"labels": LABELS})
    cluster.put(JOBSETS, manifests.jobset("train", "team", replicated_jobs=[workers]))
    jobs = [f"train-{number}" for number in range(MAX_OWNERS + 1)]
    for name in jobs:
        store_job(cluster, name, 3, ownerReferences=[owner("JobSet", "train", "u")])
    found = await OwnerCapacities(cluster.client).capacities_of(group(*map(maker, jobs), jobset="train"))
    assert [it.description for it in found] == ["JobSet train (w) makes 2"]


async def test_a_missing_or_foreign_owner_is_unknown_and_a_crowd_is_not_looked_up(cluster: InMemoryCluster) -> None:
    owners = OwnerCapacities(cluster.client)
    found = await owners.capacities_of(group(maker("gone"), maker("net", "TFJob", "kubeflow.org/v1"), None))
    assert {it.kind: it.max_pods for it in found} == {"Job": None, "TFJob": None, "Pod": None}
    assert await owners.capacities_of(group(*(maker(f"j{number}") for number in range(MAX_OWNERS + 1)))) == ()


async def test_an_answer_is_believed_for_a_while(cluster: InMemoryCluster) -> None:
    now = 0.0
    owners, seen = OwnerCapacities(cluster.client, monotonic=lambda: now), group(maker("work"))
    store_job(cluster, "work", 3)
    for parallelism in (3, 2):
        assert [it.max_pods for it in await owners.capacities_of(seen)] == [3]
        store_job(cluster, "work", parallelism)
    now += CACHE_SECONDS
    assert [it.max_pods for it in await owners.capacities_of(seen)] == [2]
