"""/healthz: fails for what only another process would mend, and for nothing else."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress

from prometheus_client import CollectorRegistry

from jobset_gate.runtime.controller import STUCK_SECONDS, Controller, ControllerMetrics
from jobset_gate.runtime.healthz import LivenessCheck
from jobset_gate.runtime.workqueue import WorkQueue


class Leader:
    """A leader with one loop of two workers, and what /healthz would say."""

    def __init__(self) -> None:
        self.leading = asyncio.Event()
        self.leading.set()
        self.liveness = LivenessCheck(self.leading)
        self.queue: WorkQueue[str] = WorkQueue()
        self.never = asyncio.Event()
        self.raises: Callable[[], BaseException] | None = None
        self.loop = Controller("gang", self.queue, self.reconcile, ControllerMetrics(CollectorRegistry()), workers=2)
        self.liveness.add_checks(self.loop.health_error)

    async def reconcile(self, key: str) -> float | None:
        if key == "stuck":
            await self.never.wait()
        if self.raises is not None:
            raise self.raises()
        return None

    @property
    def wrong(self) -> str:
        return self.liveness.check()


@asynccontextmanager
async def led() -> AsyncIterator[Leader]:
    leader = Leader()
    task = asyncio.create_task(leader.loop.run(), name="gangs")
    leader.liveness.watch_task(task)
    await asyncio.sleep(0)
    try:
        yield leader
    finally:
        task.cancel()
        with suppress(BaseException):
            await task


async def test_a_leader_at_work_is_healthy() -> None:
    async with led() as leader:
        for number in range(10):
            leader.queue.add(str(number))
        assert leader.wrong == ""
        await asyncio.sleep(3600)
        assert leader.wrong == ""


async def test_a_worker_that_does_not_come_back_is_not_and_is_again_when_it_does() -> None:
    async with led() as leader:
        leader.queue.add("stuck")
        await asyncio.sleep(STUCK_SECONDS - 1)
        assert leader.wrong == ""
        await asyncio.sleep(2)
        assert leader.wrong == f"a worker of gang has been at one key for {STUCK_SECONDS + 1:.0f} s"
        leader.never.set()
        await asyncio.sleep(1)
        assert leader.wrong == ""


async def test_a_leader_whose_workers_have_ended_is_not() -> None:
    """Whatever ended them without a word."""
    async with led() as leader:
        leader.queue.shutdown()
        await asyncio.sleep(1)
        assert leader.wrong == "gangs has ended and the rest goes on"
        leader.liveness = LivenessCheck(leader.leading)
        leader.liveness.add_checks(leader.loop.health_error)
        assert leader.wrong == "2 of 2 workers of gang have ended"


async def test_a_standby_is_healthy_whatever_became_of_its_loops() -> None:
    leader = Leader()
    leader.leading.clear()
    assert leader.wrong == ""
    async with led() as other:
        other.queue.add("stuck")
        await asyncio.sleep(STUCK_SECONDS * 2)
        other.leading.clear()
        assert other.wrong == ""


async def test_a_part_that_failed_while_another_does_not_end_is_told_by_its_name() -> None:
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
