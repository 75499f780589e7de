"""What the API servers tell of groups reaches the index: all kinds of objects, and what of them a selector lets go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest

from controllers.podgroups import informers
from controllers.podgroups.cache import PodGroupCache
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import CONFIGMAPS, NODES, POD_GROUPS, PODS, RESOURCEQUOTAS
from jobset_gate.podgroups import decode
from jobset_gate.podgroups.model import FLAVOR_OF, Flavor, Format, PodGroupKey
from jobset_gate.podgroups.record import encode_record
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.runtime.decoder import WatchProblem
from jobset_gate.settings import Groups
from tests.fakes.podgroups import manifests, objects
from tests.plane.planes import Plane

PATIENCE = 30.0


class RunningInformers:
    """An index behind real watches."""

    def __init__(self, client: Client, namespace: str) -> None:
        self._news = asyncio.Event()
        self.problems: list[WatchProblem] = []
        self.index = PodGroupCache(Groups())
        self.index.subscribe(lambda *_: self._news.set())
        self.informers = informers.informers(
            client, self.index, Groups(), namespace=namespace, on_problem=self.problems.append
        )

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(PATIENCE):
            while not holds():
                self._news.clear()
                await self._news.wait()


@asynccontextmanager
async def watching(client: Client, namespace: str) -> AsyncIterator[RunningInformers]:
    made = RunningInformers(client, namespace)
    tasks = [asyncio.create_task(it.run()) for it in made.informers]
    try:
        async with asyncio.timeout(PATIENCE):
            await informers.wait_for_sync(made.informers)
        yield made
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@pytest.fixture(params=["embedded", pytest.param("scheduled", marks=pytest.mark.real)])
def plane(request: pytest.FixtureRequest) -> Plane:
    """The embedded one, which has no CRDs of pod groups, and the one with all three."""
    made: Plane = request.getfixturevalue(f"{request.param}_plane")
    return made


@pytest.fixture
async def client(plane: Plane) -> AsyncIterator[Client]:
    async with plane.client() as made:
        yield made


@pytest.fixture
async def node(client: Client, namespace: str) -> AsyncIterator[str]:
    """A node of the test's own with 4 cpus."""
    made = objects.node(namespace, cpu="4") | {"apiVersion": "v1", "kind": "Node"}
    del made["metadata"]["resourceVersion"]
    await client.create(NODES, made)
    yield namespace
    await client.delete(NODES, namespace)


async def test_pods_are_followed_from_their_gate_to_their_end(client: Client, namespace: str, node: str) -> None:
    group = PodGroupKey(design=Flavor.KOORDINATOR, namespace=namespace, name="g")
    way = Format.KOORDINATOR_ANNOTATIONS
    async with watching(client, namespace) as made:
        index = made.index
        await made.until(lambda: free(index, node) == 4000)

        held = manifests.held(manifests.pod("a", "g", way, 2, schedulerName="nobody"), namespace, "g", way)
        await client.create(PODS, held, namespace)
        await made.until(lambda: [it.gated for it in members(index, group)] == [True])
        assert index.groups()[group].present == 1

        ungated = manifests.pod("b", "g", way, 2, nodeName=node)
        await client.create(PODS, ungated, namespace)
        await made.until(lambda: free(index, node) == 3000)
        assert [(it.name, it.ungated) for it in members(index, group)] == [("a", False), ("b", True)]
        assert index.groups()[group].gathered
        assert index.accounts_for(members(index, group)[1].uid)

        gone = {"spec": {"schedulingGates": [{"$patch": "delete", "name": names.POD_GROUP_GATE}]}}
        note = {"metadata": {"annotations": {names.POD_GROUP_OPENED: decode.opened_text(7, objects.TEN_O_CLOCK)}}}
        await client.patch(PODS, "a", namespace, body=gone | note, patch=PatchType.STRATEGIC)
        await made.until(lambda: not members(index, group)[0].gated)
        opened = members(index, group)[0]
        assert (opened.generation, opened.ungated_at, opened.ungated) == (7, objects.TEN_O_CLOCK, False)

        binding = {
            "apiVersion": "v1",
            "kind": "Binding",
            "metadata": {"name": "a"},
            "target": {"kind": "Node", "name": node},
        }
        await client.post(PODS.path(namespace, "a", "binding"), binding)
        await made.until(lambda: free(index, node) == 2000)
        await made.until(lambda: members(index, group)[0].node == node)

        ended = {"status": {"phase": "Succeeded"}}
        await client.patch(PODS, "a", namespace, body=ended, patch=PatchType.MERGE, subresource="status")
        await made.until(lambda: free(index, node) == 3000)
        await made.until(lambda: members(index, group)[0].phase == "Succeeded")
        assert index.groups()[group].present == 1, "nobody knows whose run that one was"

        for pod in ("a", "b"):
            await client.delete(PODS, pod, namespace, grace_seconds=0)
        await made.until(lambda: index.snapshot(group) is None)
        assert free(index, node) == 4000
        assert made.problems == [], "though the embedded server has none of the CRDs"


async def test_records_and_quotas_are_seen_where_they_lie(client: Client, namespace: str) -> None:
    group = PodGroupKey(design=Flavor.ALIBABA, namespace=namespace, name="g")
    decided = objects.record((group, 3))
    body = objects.config_map(group, decided)
    meta = {key: body["metadata"][key] for key in ("name", "annotations")} | {
        "labels": {names.POD_GROUP_RECORD: "true"}
    }
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"pods": "9"}}}
    async with watching(client, namespace) as made:
        index = made.index
        await client.create(CONFIGMAPS, {"metadata": meta, "data": body["data"]}, namespace)
        await made.until(lambda: index.snapshot(group) is not None)
        seen = index.snapshot(group)
        assert seen is not None
        assert seen.record == decided
        assert seen.record_ref is not None
        await client.create(RESOURCEQUOTAS, quota, namespace)
        await made.until(lambda: [it.hard for it in index.quotas(namespace)] == [{"pods": 9000}])
        await client.delete(CONFIGMAPS, meta["name"], namespace, uid=seen.record_ref.uid)
        await made.until(lambda: index.snapshot(group) is None)


@pytest.mark.parametrize("plane", [pytest.param("scheduled", marks=pytest.mark.real)], indirect=True)
@pytest.mark.parametrize("way", manifests.API_GROUP)
async def test_pod_groups_of_all_kinds_store_records(client: Client, namespace: str, way: Format) -> None:
    group, kind = (
        PodGroupKey(design=FLAVOR_OF[way], namespace=namespace, name="g"),
        POD_GROUPS[manifests.API_GROUP[way]],
    )
    async with watching(client, namespace) as made:
        index = made.index
        await client.create(kind, manifests.pod_group("g", 3, way), namespace)
        await made.until(lambda: index.snapshot(group) is not None)
        seen = index.snapshot(group)
        assert seen is not None
        assert seen.record_ref is not None
        assert (seen.group.minimum, seen.record_ref.api, seen.record) == (3, kind.group, None)
        decided = objects.record((group, 1), home_uid=seen.record_ref.uid)
        stamped = {"uid": seen.record_ref.uid, "resourceVersion": seen.record_ref.resource_version}
        note = {"metadata": stamped | {"annotations": {names.POD_GROUP_RECORD: encode_record(decided)}}}
        await client.patch(kind, "g", namespace, body=note, patch=PatchType.MERGE)
        await made.until(lambda: (now := index.snapshot(group)) is not None and now.record == decided)
        await client.delete(kind, "g", namespace)
        await made.until(lambda: index.snapshot(group) is None)


def members(index: PodGroupCache, group: PodGroupKey) -> tuple[MemberPod, ...]:
    seen = index.snapshot(group)
    return () if seen is None else seen.members


def free(index: PodGroupCache, node: str) -> int | None:
    """Thousandths of a cpu."""
    return next((it.free["cpu"] for it in index.node_infos() if it.node.name == node), None)
