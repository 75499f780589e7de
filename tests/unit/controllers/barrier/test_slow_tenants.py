"""Conditions and Events pass the tenant's own admission webhooks: whatever they do, no other gang waits for it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.fake import jobset_crd, manifests
from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.apiserver.faults import ALWAYS, WRITES, Match, Rule
from jobset_gate.injection import inject
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBSETS, NAMESPACES, PODS
from jobset_gate.settings import Settings
from tests.fakes.gate_stream import until
from tests.fakes.wire_objects import owner

SLOW, QUICK = "slow", "quick"
SLOW_GANGS = 8
WORKERS = 4
PROMPTLY = 5.0
"""Virtual seconds; each request that hangs takes thirty."""

Json = dict[str, Any]


class Cluster:
    """Two tenants, and a controller with fewer workers than the slow one has gangs."""

    def __init__(self, server: ApiServer, client: Client) -> None:
        self.server, self.client = server, client
        self.hanging: list[Rule] = []

    def hang(self, match: Match) -> None:
        """No such request is answered while the test goes on."""
        self.hanging.append(self.server.faults.hang(match, times=ALWAYS))

    async def gang(self, name: str, namespace: str, *, bypassed: bool) -> Json:
        """Stored as the webhook leaves it; a bypassed one is to be released as soon as it is seen."""
        user = manifests.gang(name, namespace, jobs=1, pods=1, annotations={names.BYPASS: "true"} if bypassed else None)
        gated = inject.injected(user, None, settings=Settings(), token="").document
        return await self.client.create(JOBSETS, gated, namespace)

    async def pod(self, jobset: Json) -> str:
        """One of its pods, whose barrier runs."""
        meta = jobset["metadata"]
        labels = {
            names.GATED: names.GATED_VALUE,
            names.JS_NAME: meta["name"],
            names.JS_UID: meta["uid"],
            names.JS_REPLICATED_JOB: "workers",
            names.JS_JOB_INDEX: "0",
            names.JS_RESTART_ATTEMPT: "0",
        }
        name, namespace = f"{meta['name']}-pod", meta["namespace"]
        containers = [{"name": "main", "image": "image"}]
        owners = [owner("JobSet", meta["name"], meta["uid"])]  # no Job has any part in this
        body = {
            "metadata": {"name": name, "labels": labels, "ownerReferences": owners},
            "spec": {"containers": containers, "nodeName": "node"},
        }
        await self.client.create(PODS, body, namespace)
        running = {"startedAt": "2026-01-01T00:00:00Z"}
        barrier = {"name": names.BARRIER_CONTAINER, "image": "i", "imageID": "", "ready": False, "restartCount": 0}
        status = {"phase": "Pending", "initContainerStatuses": [{**barrier, "state": {"running": running}}]}
        await self.client.patch(
            PODS, name, namespace, body={"status": status}, patch=PatchType.MERGE, subresource="status"
        )
        return name

    async def decided(self, name: str, namespace: str) -> bool:
        try:
            gate = await self.client.get(CONFIGMAPS, names.config_map_name(name), namespace)
        except NotFound:
            return False
        return names.KEY_VERDICT in gate.get("data", {})

    async def until_so(self, question: Callable[[], Awaitable[bool]]) -> None:
        while not await question():  # noqa: ASYNC110 - the API is called, as a user would
            await asyncio.sleep(0.05)

    async def reported(self, pod: str, namespace: str) -> bool:
        found = await self.client.get(PODS, pod, namespace)
        return names.VERDICT in (found["metadata"].get("annotations") or {})


@pytest.fixture
async def cluster() -> AsyncIterator[Cluster]:
    async with ApiServer() as server, Client(Access(server=server.url)) as client:
        await jobset_crd.install(client)
        for name in (SLOW, QUICK):
            await client.create(NAMESPACES, {"metadata": {"name": name}})
        options = ManagerOptions(leader_elect=False, extend_crd=False, workers=WORKERS, registry=CollectorRegistry())
        manager = Manager(Access(server=server.url), options)
        running = asyncio.create_task(manager.run())
        await manager.leading.wait()
        made = Cluster(server, client)
        yield made
        for rule in made.hanging:
            rule.released.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


@pytest.mark.parametrize("bypassed", [False, True], ids=["the conditions hang", "the Events hang"])
async def test_a_gang_is_released_promptly_while_whatever_is_said_of_many_others_hangs(
    cluster: Cluster, bypassed: bool
) -> None:
    cluster.hang(Match(EVENTS, WRITES, SLOW))
    cluster.hang(Match(JOBSETS, WRITES, SLOW, subresource="status"))
    for number in range(SLOW_GANGS):
        await cluster.gang(f"slow-{number}", SLOW, bypassed=bypassed)
    await until(lambda: sum(rule.struck for rule in cluster.hanging) >= WORKERS)
    pod = await cluster.pod(await cluster.gang("gang", QUICK, bypassed=True))
    async with asyncio.timeout(PROMPTLY):
        await cluster.until_so(lambda: cluster.reported(pod, QUICK))
    assert await cluster.decided("gang", QUICK)
