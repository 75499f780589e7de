"""What reaches a webhook in a cluster: its Service, and users who create JobSets without a pause."""

import asyncio
import itertools
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from typing_extensions import override

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import KubeError
from jobset_gate.kube.resources import JOBSETS, SERVICES
from tests.fakes.certificates import SERVICE
from tests.fakes.jobsets import jobset
from tests.fakes.tcp_forwarder import StreamPair, TcpForwarder

Json = dict[str, Any]
RESTS = 0.2  # seconds


class Forwarder(TcpForwarder):
    """New connections to `port` go to one of `endpoints` (ports) in turn.

    As with a Service, a connection stays with the endpoint it was made to, also when that is one no more.
    """

    def __init__(self) -> None:
        super().__init__()
        self.endpoints: list[int] = []
        self._turn = itertools.count()

    @override
    async def connect(self, near: StreamPair) -> StreamPair | None:
        if not self.endpoints:
            return None
        return await asyncio.open_connection("127.0.0.1", self.endpoints[next(self._turn) % len(self.endpoints)])


@asynccontextmanager
async def service(client: Client, namespace: str) -> AsyncIterator[Forwarder]:
    """The webhook's Service: the API server finds the forwarder behind it."""
    body = {"metadata": {"name": SERVICE}, "spec": {"type": "ExternalName", "externalName": "localhost"}}
    async with Forwarder() as forwarder:
        await client.create(SERVICES, body, namespace)
        yield forwarder


@dataclass
class JobSetTraffic:
    """JobSets as they are created one after another by several users at once."""

    client: Client
    namespace: str
    prefix: str = "gang"
    retries: int = 0
    """How often a user tries again who was refused."""
    made: int = 0
    retried: int = 0
    failed: list[str] = field(default_factory=list)
    uninjected: list[str] = field(default_factory=list)
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)
    _news: asyncio.Event = field(default_factory=asyncio.Event)

    async def until(self, count: int) -> None:
        """Until that many more than now have been answered."""
        wanted = self.made + len(self.failed) + count
        while self.made + len(self.failed) < wanted:
            self._news.clear()
            await self._news.wait()

    async def one(self) -> None:
        name = f"{self.prefix}-{next(self._numbers)}"
        given = jobset(name=name)
        given["metadata"]["namespace"] = self.namespace
        for attempt in range(self.retries + 1):
            try:
                stored = await self.client.create(JOBSETS, given, self.namespace)
            except KubeError as error:
                if attempt == self.retries:
                    self.failed.append(f"{name}: {error}")
                self.retried += 1
                continue
            self.made += 1
            if not injected(stored):
                self.uninjected.append(name)
            break
        self._news.set()


def injected(stored: Json) -> bool:
    """Does every pod template of it have the barrier?"""
    templates = [it["template"]["spec"]["template"] for it in stored["spec"]["replicatedJobs"]]
    return all(
        any(one["name"] == names.BARRIER_CONTAINER for one in template["spec"].get("initContainers", ()))
        for template in templates
    )


async def until_webhook_called(client: Client, namespace: str) -> None:
    """Returns once calls succeed: nothing tells when an API server has read its configurations but that it asks."""
    probe, good = JobSetTraffic(client.without_retries(), namespace, secrets.token_hex(4)), 0
    while good < 5:
        await probe.one()
        good = 0 if probe.failed or probe.uninjected else good + 1
        probe.failed.clear()
        probe.uninjected.clear()


@asynccontextmanager
async def traffic(client: Client, namespace: str, users: int = 8, retries: int = 0) -> AsyncIterator[JobSetTraffic]:
    """So many users at once, as long as the block runs; requests in flight at its end are awaited.

    They rest between two: without, they would take all processors for as long as a webhook starts and stops.
    """
    made = JobSetTraffic(client.without_retries(), namespace, retries=retries)
    stop = asyncio.Event()

    async def user() -> None:
        while not stop.is_set():
            await made.one()
            await asyncio.sleep(RESTS)

    tasks = [asyncio.create_task(user(), name="user") for _ in range(users)]
    try:
        yield made
    finally:
        stop.set()
        await asyncio.gather(*tasks)
