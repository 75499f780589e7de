"""/healthz, /readyz and /metrics over HTTP, and what /healthz checks."""

from __future__ import annotations

import asyncio
import threading
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Gauge

from jobset_gate.runtime.connections import ConnectionLimits
from jobset_gate.runtime.controller import STUCK_SECONDS, Controller
from jobset_gate.runtime.healthz import LIMITS, HealthServer, LivenessCheck
from jobset_gate.runtime.workqueue import WorkQueue
from tests.fakes.stalled_clients import HALF_HEAD, head, stalled_clients

TIMEOUT = 60.0

# --- Over HTTP, in a thread: an event loop that hangs is what the probes are there to notice


class ServedHealth:
    """A HealthServer in a thread with an event loop of its own."""

    def __init__(self) -> None:
        self.unhealthy = self.unready = ""
        self.registry = CollectorRegistry()
        self.loop = asyncio.new_event_loop()
        self.server = HealthServer(
            self.registry, healthy=lambda: self.unhealthy, ready=lambda: self.unready, host="127.0.0.1", port=0
        )

    def get(self, path: str, timeout: float = TIMEOUT) -> tuple[int, str]:
        """As a kubelet does: status and body. Raises TimeoutError."""
        try:
            with urllib.request.urlopen(f"{self.server.url}{path}", timeout=timeout) as answer:  # noqa: S310 - ours
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refused:
            with refused:
                return refused.code, refused.read().decode()


@contextmanager
def served() -> Iterator[ServedHealth]:
    it = ServedHealth()
    thread = threading.Thread(target=it.loop.run_forever, name="health")
    thread.start()
    try:
        asyncio.run_coroutine_threadsafe(it.server.start(), it.loop).result(TIMEOUT)
        yield it
    finally:
        asyncio.run_coroutine_threadsafe(it.server.stop(), it.loop).result(TIMEOUT)
        it.loop.call_soon_threadsafe(it.loop.stop)
        thread.join(TIMEOUT)
        it.loop.close()


def test_each_probe_is_ok_or_has_the_error_and_a_scrape_has_the_registry() -> None:
    with served() as it:
        assert it.get("/healthz") == it.get("/readyz") == (200, "ok")
        it.unhealthy, it.unready = "2 of 4 workers of gang have ended", ""
        assert it.get("/healthz") == (500, it.unhealthy)
        assert it.get("/readyz") == (200, "ok")
        it.unhealthy, it.unready = "", "pods: not listed yet"
        assert it.get("/healthz") == (200, "ok")
        assert it.get("/readyz") == (500, it.unready)
        Gauge("something", "Of the registry.", registry=it.registry).set(7)
        status, text = it.get("/metrics")
        assert (status, "something 7.0" in text.splitlines()) == (200, True)


def test_an_event_loop_that_hangs_answers_no_probe() -> None:
    """The kubelet counts that as a failure, which is what it is."""
    with served() as it:
        hangs, goes_on = threading.Event(), threading.Event()

        def hang() -> None:
            hangs.set()
            goes_on.wait(TIMEOUT)

        it.loop.call_soon_threadsafe(hang)
        assert hangs.wait(TIMEOUT)
        try:
            with pytest.raises(TimeoutError):
                it.get("/healthz", timeout=0.2)
        finally:
            goes_on.set()
        assert it.get("/healthz") == (200, "ok")


# --- Clients that never finish a request


@asynccontextmanager
async def limited(limits: ConnectionLimits) -> AsyncIterator[HealthServer]:
    server = HealthServer(
        CollectorRegistry(), healthy=lambda: "", ready=lambda: "", host="127.0.0.1", port=0, limits=limits
    )
    await server.start()
    try:
        yield server
    finally:
        await server.stop()


async def _hold(half: bytes) -> None:
    """128 clients send this half of a request; one that sends a whole one gets its response."""
    limits = ConnectionLimits(connections=LIMITS.connections, request_seconds=2.0, evict_after_seconds=1.0)
    async with limited(limits) as server:
        with stalled_clients(server.url) as stalled:
            await asyncio.to_thread(stalled.open, 2 * LIMITS.connections, half)
            async with aiohttp.ClientSession() as session, session.get(f"{server.url}/healthz") as answer:
                assert (answer.status, await answer.text()) == (200, "ok")
            assert await asyncio.to_thread(stalled.held) <= LIMITS.connections
            async with asyncio.timeout(TIMEOUT):
                while await asyncio.to_thread(stalled.held):  # noqa: ASYNC110 - sockets of clients give no event
                    await asyncio.sleep(0.05)


@pytest.mark.usefixtures("real_time")
async def test_unfinished_requests_hold_64_connections_and_a_probe_is_answered() -> None:
    await asyncio.gather(*map(_hold, (b"", HALF_HEAD, head(100, "/healthz") + b"x")))


@pytest.mark.usefixtures("real_time")
async def test_a_port_that_is_taken_is_an_error() -> None:
    async with limited(LIMITS) as server:
        port = int(server.url.rsplit(":", 1)[1])
        other = HealthServer(CollectorRegistry(), healthy=lambda: "", ready=lambda: "", host="127.0.0.1", port=port)
        with pytest.raises(OSError, match=f"127.0.0.1:{port}: address already in use"):
            await other.start()
        await other.stop()


# --- What /healthz checks, in virtual time


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
        return None

    @property
    def error(self) -> str:
        return self.liveness.check()


@asynccontextmanager
async def leading() -> AsyncIterator[Leader]:
    leader = Leader()
    task = asyncio.create_task(leader.controller.run(), name="gangs")
    leader.liveness.watch_task(task)
    await asyncio.sleep(0)
    try:
        yield leader
    finally:
        task.cancel()
        with suppress(BaseException):
            await task


async def test_a_leader_at_work_is_healthy() -> None:
    async with leading() as leader:
        for number in range(10):
            leader.queue.add(str(number))
        assert leader.error == ""
        await asyncio.sleep(3600)
        assert leader.error == ""


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
        leader.queue.shutdown()
        await asyncio.sleep(1)
        assert leader.error == "gangs has ended and the rest goes on"
        leader.liveness = LivenessCheck(leader.leading)
        leader.liveness.add_checks(leader.controller.health_error)
        assert leader.error == "2 of 2 workers of gang have ended"


async def test_a_failed_task_is_named_while_the_others_go_on() -> None:
    """Such a process would stand there for ever: neither at work nor gone."""
    liveness = LivenessCheck(asyncio.Event())

    async def breaks() -> None:
        raise ValueError("a bug")

    async def ends() -> None:
        return

    fine, task = asyncio.create_task(ends()), asyncio.create_task(breaks(), name="informer of pods")
    liveness.watch_task(fine)
    liveness.watch_task(task)
    assert liveness.check() == ""
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert liveness.check() == "informer of pods has ended and the rest goes on"
