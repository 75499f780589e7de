"""Workers on a queue: a key that fails delays no other (faults.md 6)."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest
import structlog
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from jobset_gate.kube.errors import NotLeader, ServerError, Throttled
from jobset_gate.runtime.controller import Controller, ControllerMetrics
from jobset_gate.runtime.workqueue import Requeue, WorkQueue
from tests.fakes.background import in_background


class WorkersHarness:
    """A queue with workers, and when each key was reconciled."""

    def __init__(self, workers: int = 2) -> None:
        self.registry = CollectorRegistry()
        self.queue: WorkQueue[str] = WorkQueue()
        self.at: dict[str, list[float]] = {}
        self.raises: dict[str, Callable[[], Exception]] = {}
        self.requeue_after: dict[str, float] = {}
        self.blocked: dict[str, asyncio.Event] = {}
        self.controller = Controller(
            "gang", self.queue, self.reconcile, ControllerMetrics(self.registry), workers=workers
        )

    async def reconcile(self, key: str) -> float | None:
        self.at.setdefault(key, []).append(asyncio.get_running_loop().time())
        if key in self.blocked:
            await self.blocked[key].wait()
        if key in self.raises:
            error = self.raises[key]()
            raise error
        return self.requeue_after.get(key)

    def count(self, result: str) -> float:
        labels = {"controller": "gang", "result": result}
        return self.registry.get_sample_value("controller_runtime_reconcile_total", labels) or 0.0


@asynccontextmanager
async def running(workers: int = 2) -> AsyncIterator[WorkersHarness]:
    harness = WorkersHarness(workers)
    with capture_logs():  # printed tracebacks take longer than the test
        async with in_background(harness.controller.run()):
            yield harness


async def test_a_key_is_requeued_after_the_seconds_that_its_reconcile_returns() -> None:
    async with running() as it:
        it.requeue_after["a"] = 30.0
        it.queue.add("a")
        await asyncio.sleep(100)
        assert it.at["a"] == [0.0, 30.0, 60.0, 90.0]
        assert it.count("requeue_after") == 4


@pytest.mark.parametrize(
    ("retry_after", "until", "at"), [(20.0, 50, [0.0, 20.0, 40.0]), (86400.0, 61, [0.0, 60.0])], ids=["20s", "a-day"]
)
async def test_a_throttled_key_is_requeued_after_retry_after_and_no_later_than_the_cap(
    retry_after: float, until: float, at: list[float]
) -> None:
    """And no sooner, as a key that fails is; the next pass decides again."""
    async with running() as it:
        it.raises["a"] = lambda: Throttled(429, retry_after=retry_after)
        it.queue.add("a")
        await asyncio.sleep(until)
        assert it.at["a"] == at
        assert (it.count("requeue_after"), it.count("error")) == (len(at), 0)


async def test_a_key_without_delay_comes_again_at_once_and_others_get_their_turn() -> None:
    async with running(workers=1) as it:
        it.requeue_after["a"] = 0.0
        it.queue.add("a")
        for _ in range(10):
            await asyncio.sleep(0)
        it.requeue_after.clear()
        await asyncio.sleep(1)
        assert 2 <= len(it.at["a"]) <= 10
        assert set(it.at["a"]) == {0.0}


async def test_a_key_that_always_raises_does_not_delay_the_others() -> None:
    async with running(workers=1) as it:
        it.raises["bad"] = lambda: ValueError("a bug for one gang only")
        it.queue.add("bad")
        for number in range(100):
            it.queue.add(f"good-{number}")
            await asyncio.sleep(1)
        assert all(it.at[f"good-{number}"] == [float(number)] for number in range(100))


async def test_a_key_that_raises_backs_off_and_is_never_given_up_until_it_succeeds() -> None:
    async with running() as it:
        it.raises["bad"] = lambda: ValueError("always")
        it.queue.add("bad")
        await asyncio.sleep(3600)
        pauses = [after - before for before, after in zip(it.at["bad"], it.at["bad"][1:], strict=False)]
        assert pauses[0] < 0.01
        assert 60 <= len(pauses) <= 150
        assert 30 <= pauses[-1] <= 60
        assert it.count("error") == len(it.at["bad"])
        it.raises.clear()
        await asyncio.sleep(120)
        it.raises["bad"] = lambda: ServerError(500)
        before = len(it.at["bad"])
        it.queue.add("bad")
        await asyncio.sleep(1)
        assert len(it.at["bad"]) - before > 5, "the next failure is a first one"


async def test_a_requeue_is_no_error() -> None:
    async with running() as it:
        it.raises["a"] = lambda: Requeue("another write was first")
        it.queue.add("a")
        await asyncio.sleep(0.004)
        it.raises.clear()
        await asyncio.sleep(1)
        assert (it.count("error"), it.count("success")) == (0, 1)
        assert it.count("requeue") >= 1


async def test_a_write_refused_for_want_of_the_lease_ends_all_workers_and_loses_no_key() -> None:
    it = WorkersHarness(workers=3)
    it.raises["a"] = lambda: NotLeader("the lease is not surely ours")
    it.queue.add("a")
    with pytest.raises(ExceptionGroup) as stopped:
        await it.controller.run()
    assert stopped.group_contains(NotLeader)
    assert it.queue.unfinished_seconds == 0.0


class SampleKey(NamedTuple):
    namespace: str
    name: str

    def log_fields(self) -> dict[str, str]:
        return {"namespace": self.namespace, "jobset": self.name}


async def test_log_lines_of_a_pass_name_the_key() -> None:
    queue: WorkQueue[SampleKey] = WorkQueue()

    async def reconcile(_: SampleKey) -> float | None:
        structlog.get_logger("deep.inside").info("something")
        raise ServerError(500)

    controller = Controller("gang", queue, reconcile, workers=1, log_fields=SampleKey.log_fields)
    with capture_logs(processors=[structlog.contextvars.merge_contextvars]) as lines:
        async with in_background(controller.run()):
            queue.add(SampleKey("team-a", "train"))
            await asyncio.sleep(0.001)
    assert [line["event"] for line in lines] == ["something", "reconcile failed"]
    assert {(line["controller"], line["namespace"], line["jobset"]) for line in lines} == {("gang", "team-a", "train")}
    assert structlog.contextvars.get_contextvars() == {}
