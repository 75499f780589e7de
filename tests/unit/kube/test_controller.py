"""Workers on a queue: one key's trouble is its own (faults.md 6)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from jobset_gate.barrier.model import GangKey
from jobset_gate.kube.errors import NotLeader, ServerError, Throttled
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.workqueue import Requeue, WorkQueue


class ControllerHarness:
    """A queue with workers, and when each key was worked on."""

    def __init__(self, workers: int = 2) -> None:
        self.registry = CollectorRegistry()
        self.queue: WorkQueue[str] = WorkQueue()
        self.at: dict[str, list[float]] = {}
        self.raises: dict[str, Callable[[], Exception]] = {}
        self.again: dict[str, float] = {}
        self.waits: dict[str, asyncio.Event] = {}
        self.loop = Controller("gang", self.queue, self.reconcile, ControllerMetrics(self.registry), workers=workers)

    async def reconcile(self, key: str) -> float | None:
        self.at.setdefault(key, []).append(asyncio.get_running_loop().time())
        if key in self.waits:
            await self.waits[key].wait()
        if key in self.raises:
            error = self.raises[key]()
            raise error
        return self.again.get(key)

    def count(self, result: str) -> float:
        found = self.registry.get_sample_value(
            "controller_runtime_reconcile_total", {"controller": "gang", "result": result}
        )
        return found or 0.0


@asynccontextmanager
async def open_desk(workers: int = 2) -> AsyncIterator[ControllerHarness]:
    desk = ControllerHarness(workers)
    task = asyncio.create_task(desk.loop.run())
    try:
        yield desk
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def test_a_key_is_worked_on_once_for_each_time_it_is_added() -> None:
    async with open_desk() as desk:
        for _ in range(3):
            desk.queue.add("a")
            await asyncio.sleep(1)
        await asyncio.sleep(100)
        assert desk.at == {"a": [0.0, 1.0, 2.0]}
        assert desk.count("success") == 3


async def test_a_key_comes_again_when_it_asked_for_it() -> None:
    async with open_desk() as desk:
        desk.again["a"] = 30.0
        desk.queue.add("a")
        await asyncio.sleep(100)
        assert desk.at["a"] == [0.0, 30.0, 60.0, 90.0]
        assert desk.count("requeue_after") == 4


async def test_a_key_that_the_server_has_put_off_comes_again_when_it_said() -> None:
    """And no sooner, as a key that fails does; what was decided is decided anew then."""
    async with open_desk() as desk:
        desk.raises["a"] = lambda: Throttled(429, retry_after=20.0)
        desk.queue.add("a")
        await asyncio.sleep(50)
        assert desk.at["a"] == [0.0, 20.0, 40.0]
        assert (desk.count("requeue_after"), desk.count("error")) == (3, 0)


async def test_no_server_puts_a_key_off_for_ever() -> None:
    async with open_desk() as desk:
        desk.raises["a"] = lambda: Throttled(429, retry_after=86400.0)
        desk.queue.add("a")
        await asyncio.sleep(61)
        assert desk.at["a"] == [0.0, 60.0]


async def test_a_key_that_asks_for_no_delay_comes_again_at_once_and_others_get_their_turn() -> None:
    async with open_desk(workers=1) as desk:
        desk.again["a"] = 0.0
        desk.queue.add("a")
        for _ in range(10):
            await asyncio.sleep(0)
        desk.again.clear()
        await asyncio.sleep(1)
        assert 2 <= len(desk.at["a"]) <= 10
        assert set(desk.at["a"]) == {0.0}


async def test_a_key_that_always_raises_does_not_delay_the_others() -> None:
    async with open_desk(workers=1) as desk:
        desk.raises["bad"] = lambda: ValueError("a bug for one gang only")
        desk.queue.add("bad")
        for number in range(100):
            desk.queue.add(f"good-{number}")
            await asyncio.sleep(1)
        assert all(desk.at[f"good-{number}"] == [float(number)] for number in range(100))


async def test_a_key_that_always_raises_backs_off_and_is_never_given_up() -> None:
    async with open_desk() as desk:
        desk.raises["bad"] = lambda: ValueError("always")
        desk.queue.add("bad")
        await asyncio.sleep(3600)
        pauses = [after - before for before, after in zip(desk.at["bad"], desk.at["bad"][1:], strict=False)]
        assert pauses[0] < 0.01
        assert 60 <= len(pauses) <= 150
        assert 30 <= pauses[-1] <= 60
        assert desk.count("error") == len(desk.at["bad"])


async def test_after_success_the_next_failure_is_a_first_one() -> None:
    async with open_desk() as desk:
        desk.raises["a"] = lambda: ServerError(500)
        desk.queue.add("a")
        await asyncio.sleep(600)
        desk.raises.clear()
        await asyncio.sleep(120)
        desk.raises["a"] = lambda: ServerError(500)
        before = len(desk.at["a"])
        desk.queue.add("a")
        await asyncio.sleep(1)
        assert len(desk.at["a"]) - before > 5


async def test_looking_again_is_no_error() -> None:
    async with open_desk() as desk:
        desk.raises["a"] = lambda: Requeue("somebody was faster")
        desk.queue.add("a")
        await asyncio.sleep(0.004)
        desk.raises.clear()
        await asyncio.sleep(1)
        assert (desk.count("error"), desk.count("success")) == (0, 1)
        assert desk.count("requeue") >= 1


async def test_what_was_added_while_it_was_worked_on_is_worked_on_again() -> None:
    async with open_desk() as desk:
        busy = asyncio.Event()
        desk.waits["a"] = busy
        desk.queue.add("a")
        await asyncio.sleep(1)
        desk.queue.add("a")
        desk.queue.add("a")
        await asyncio.sleep(1)
        assert len(desk.at["a"]) == 1, "one key, one worker"
        busy.set()
        await asyncio.sleep(1)
        assert len(desk.at["a"]) == 2


async def test_a_write_refused_for_want_of_the_lease_ends_all_workers() -> None:
    desk = ControllerHarness(workers=3)
    desk.raises["a"] = lambda: NotLeader("the lease is not surely ours")
    desk.queue.add("a")
    with pytest.raises(ExceptionGroup) as stopped:
        await desk.loop.run()
    assert stopped.group_contains(NotLeader)


async def test_a_key_is_not_lost_to_the_queue_when_its_worker_is_stopped() -> None:
    desk = ControllerHarness(workers=1)
    desk.raises["a"] = lambda: NotLeader("no")
    desk.queue.add("a")
    with pytest.raises(ExceptionGroup):
        await desk.loop.run()
    assert desk.queue.unfinished_seconds == 0.0


async def test_what_a_pass_logs_says_which_gang_it_is_about() -> None:
    queue: WorkQueue[GangKey] = WorkQueue()

    async def reconcile(_: GangKey) -> float | None:
        structlog.get_logger("deep.inside").info("something")
        raise ServerError(500)

    loop = Controller("gang", queue, reconcile, workers=1, log_fields=GangKey.log_fields)
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        task = asyncio.create_task(loop.run())
        queue.add(GangKey("team-a", "train"))
        await asyncio.sleep(0.001)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
    assert [line["event"] for line in lines] == ["something", "reconcile failed"]
    assert {(line["controller"], line["namespace"], line["jobset"]) for line in lines} == {("gang", "team-a", "train")}
    assert structlog.contextvars.get_contextvars() == {}
