"""The controller's probes while somebody holds its port: who never finishes a request is sent away."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from jobset_gate.runtime.connections import ConnectionLimits
from jobset_gate.runtime.healthz import LIMITS, HealthServer
from tests.fakes.stalled_clients import HALF_HEAD, head, stalled_clients

PATIENCE = 60.0
SHORT = ConnectionLimits(connections=LIMITS.connections, request_seconds=2.0, evict_after_seconds=0.2)


@asynccontextmanager
async def served(limits: ConnectionLimits) -> AsyncIterator[HealthServer]:
    made = HealthServer(
        CollectorRegistry(), healthy=lambda: "", ready=lambda: "", host="127.0.0.1", port=0, limits=limits
    )
    await made.start()
    try:
        yield made
    finally:
        await made.stop()


@pytest.mark.parametrize("said", [b"", HALF_HEAD, head(100, "/healthz") + b"x"])
async def test_six_hundred_requests_without_an_end_hold_64_places_and_a_probe_is_answered(said: bytes) -> None:
    async with served(SHORT) as health:
        with stalled_clients(health.url) as held:
            await asyncio.to_thread(held.open, 600, said)
            async with aiohttp.ClientSession() as session, session.get(f"{health.url}/healthz") as answer:
                assert (answer.status, await answer.text()) == (200, "ok")
            assert await asyncio.to_thread(held.held) <= LIMITS.connections
            async with asyncio.timeout(PATIENCE):
                while await asyncio.to_thread(held.held):  # noqa: ASYNC110 - sockets of clients tell nobody
                    await asyncio.sleep(0.05)


async def test_a_port_that_is_taken_is_an_error() -> None:
    async with served(LIMITS) as health:
        port = int(health.url.rpartition(":")[2])
        other = HealthServer(CollectorRegistry(), healthy=lambda: "", ready=lambda: "", host="127.0.0.1", port=port)
        with pytest.raises(OSError, match=f"127.0.0.1:{port}: address already in use"):
            await other.start()
        await other.stop()
