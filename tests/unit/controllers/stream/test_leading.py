"""Only the leader serves the gate stream: the port opens when it leads and closes when it does so no more (A6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import generate_latest

from controllers.manager import Manager, ManagerOptions
from jobset_gate import names
from jobset_gate.fake import jobset_crd
from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import LeadershipLost
from jobset_gate.kube.resources import LEASES

NAMESPACE = "default"


class Replicas:
    """Controllers on one API server."""

    def __init__(self, access: Access) -> None:
        self._access = access
        self.tasks: dict[str, asyncio.Task[None]] = {}

    def start(self, identity: str, *, stream_port: int | None = 0) -> Manager:
        options = ManagerOptions(
            namespace=NAMESPACE,
            identity=identity,
            extend_crd=False,
            stream_port=stream_port,
            registry=CollectorRegistry(),
        )
        manager = Manager(self._access, options)
        self.tasks[identity] = asyncio.create_task(manager.run())
        return manager

    async def stop(self, identity: str) -> None:
        task = self.tasks.pop(identity)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@asynccontextmanager
async def connection(manager: Manager) -> AsyncIterator[asyncio.StreamReader]:
    """One that has asked nothing yet."""
    where = urlsplit(manager.stream_url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        yield reader
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@pytest.fixture
async def client() -> AsyncIterator[Client]:
    async with ApiServer() as server, Client(Access(server=server.url)) as made:
        await jobset_crd.install(made)
        yield made


@pytest.fixture
async def replicas(client: Client) -> AsyncIterator[Replicas]:
    made = Replicas(client.access)
    yield made
    for identity in list(made.tasks):
        await made.stop(identity)


async def test_when_the_lease_is_lost_the_stream_closes(client: Client, replicas: Replicas) -> None:
    manager = replicas.start("first")
    await manager.streaming.wait()
    where = urlsplit(manager.stream_url)
    async with connection(manager) as held:
        lease = await client.get(LEASES, names.LEASE, NAMESPACE)
        lease["spec"]["holderIdentity"] = "another"
        await client.replace(LEASES, lease)
        assert await held.read() == b""
    with pytest.raises(ExceptionGroup) as ended:
        await replicas.tasks.pop("first")
    assert ended.group_contains(LeadershipLost)
    with pytest.raises(ConnectionError):
        await asyncio.open_connection(where.hostname, where.port)


async def test_without_a_port_there_is_no_stream(replicas: Replicas) -> None:
    manager = replicas.start("first", stream_port=None)
    await manager.leading.wait()
    await asyncio.sleep(5)
    assert (manager.stream_url, manager.streaming.is_set()) == ("", False)


async def test_the_metrics_tell_what_is_open_and_how_requests_ended(replicas: Replicas) -> None:
    manager = replicas.start("first")
    await manager.streaming.wait()
    where = urlsplit(manager.stream_url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    writer.write(b"GET /v1/gangs/default/train/token/uid/0/0/pod HTTP/1.1\r\n\r\n")
    assert (await reader.read()).startswith(b"HTTP/1.1 403 ")
    writer.close()
    await writer.wait_closed()
    metrics = generate_latest(manager.options.registry).decode()
    assert "jobset_gate_stream_open 0.0" in metrics
    assert 'jobset_gate_stream_requests_total{outcome="forbidden"} 1.0' in metrics
