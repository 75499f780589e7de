"""/healthz, /readyz and /metrics over HTTP, and what /healthz checks."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from jobset_gate.kube.errors import NotLeader
from jobset_gate.runtime.connections import ConnectionLimits
from jobset_gate.runtime.controller import STUCK_SECONDS, Controller
from jobset_gate.runtime.healthz import LIMITS, HealthCheck, HealthServer, LivenessCheck
from jobset_gate.runtime.workqueue import WorkQueue
from tests.fakes.background import in_background
from tests.fakes.eventually import PATIENCE
from tests.fakes.stalled_clients import HALF_HEAD, head, stalled_clients


@asynccontextmanager
async def served(
    registry: CollectorRegistry | None = None,
    *,
    healthy: HealthCheck = lambda: "",
    ready: HealthCheck = lambda: "",
    limits: ConnectionLimits = LIMITS,
) -> AsyncIterator[HealthServer]:
    server = HealthServer(registry or CollectorRegistry(), healthy=healthy, ready=ready, limits=limits)
    await server.start("127.0.0.1", 0)
    try:
        yield server
    finally:
        await server.stop()


async def get(server: HealthServer, path: str) -> tuple[int, str]:
    """As a kubelet does: status and body."""
    async with aiohttp.ClientSession() as session, session.get(f"{server.url}{path}") as answer:
        return answer.status, await answer.text()


@pytest.mark.usefixtures("real_time")
@pytest.mark.parametrize(
    ("unhealthy", "unready"), [("", ""), ("2 of 4 workers of gang have ended", ""), ("", "pods: not listed yet")]
)
async def test_each_probe_is_ok_or_has_the_error_and_a_scrape_has_the_registry(unhealthy: str, unready: str) -> None:
    registry = CollectorRegistry()
    Gauge("something", "Of the registry.", registry=registry).set(7)
    async with served(registry, healthy=lambda: unhealthy, ready=lambda: unready) as server:
        assert await get(server, "/healthz") == ((500, unhealthy) if unhealthy else (200, "ok"))
        assert await get(server, "/readyz") == ((500, unready) if unready else (200, "ok"))
        status, text = await get(server, "/metrics")
        assert (status, "something 7.0" in text.splitlines()) == (200, True)
    with pytest.raises(aiohttp.ClientConnectorError):
        await get(server, "/healthz")


async def _hold(half: bytes) -> None:
    """128 clients send this half of a request; one that sends a whole one gets its response."""
    limits = ConnectionLimits(connections=LIMITS.connections, request_seconds=2.0, evict_after_seconds=1.0)
    async with served(limits=limits) as server:
        with stalled_clients(server.url) as stalled:
            await asyncio.to_thread(stalled.open, 2 * LIMITS.connections, half)
            assert await get(server, "/healthz") == (200, "ok")
            assert await asyncio.to_thread(stalled.held) <= LIMITS.connections
            async with asyncio.timeout(PATIENCE):
                while await asyncio.to_thread(stalled.held):  # noqa: ASYNC110 - sockets of clients give no event
                    await asyncio.sleep(0.05)


@pytest.mark.usefixtures("real_time")
async def test_unfinished_requests_hold_64_connections_and_a_probe_is_answered() -> None:
    await asyncio.gather(*map(_hold, (b"", HALF_HEAD, head(100, "/healthz") + b"x")))


class Leader:
    """A leader with one controller of two workers."""

    def __init__(self) -> None:
        self.leading = asyncio.Event()
        self.leading.set()
        self.liveness = LivenessCheck(self.leading)
        self.queue: WorkQueue[str] = WorkQueue()
        self.unblock = asyncio.Event()
        self.controller = Controller("gang", self.queue, self.reconcile, workers=2)
        self.liveness.add_checks(self.controller.health_error)

    async def reconcile(self, key: str) -> float | None:
        if key == "stuck":
            await self.unblock.wait()
        if key == "written":
            raise NotLeader
        return None

    @property
    def error(self) -> str:
        return self.liveness.check()


@asynccontextmanager
async def leading() -> AsyncIterator[Leader]:
    leader = Leader()
    async with in_background(leader.controller.run()) as task:
        task.set_name("gangs")
        leader.liveness.watch_task(task)
        await asyncio.sleep(0)
        yield leader


async def test_a_stuck_worker_is_unhealthy_until_it_goes_on_but_not_on_a_standby() -> None:
    async with leading() as leader:
        leader.queue.add("stuck")
        await asyncio.sleep(STUCK_SECONDS - 1)
        assert leader.error == ""
        await asyncio.sleep(2)
        assert leader.error == f"a worker of gang has been at one key for {STUCK_SECONDS + 1:.0f} s"
        leader.leading.clear()
        assert leader.error == ""
        leader.leading.set()
        leader.unblock.set()
        await asyncio.sleep(1)
        assert leader.error == ""


async def test_a_leader_whose_workers_have_ended_is_unhealthy() -> None:
    async with leading() as leader:
        leader.queue.add("written")
        await asyncio.sleep(1)
        assert leader.error == "gangs has ended and the rest goes on"
        leader.liveness = LivenessCheck(leader.leading)
        leader.liveness.add_checks(leader.controller.health_error)
        assert leader.error == "2 of 2 workers of gang have ended"
