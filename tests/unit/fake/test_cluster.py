"""The embedded cluster as a whole."""

from __future__ import annotations

import asyncio

import pytest

from jobset_gate.fake.apiserver import ApiServer
from jobset_gate.fake.cluster import embedded_cluster
from jobset_gate.fake.tasks import WriteQueue
from jobset_gate.kube.resources import JOBSETS, PODS
from tests.unit.fake.world import QUICK, FakeClusterStory, on_embedded, plain, running


def test_the_error_of_a_controller_is_raised_at_the_waiting_caller() -> None:
    async def story(world: FakeClusterStory) -> None:
        def broken(*_: object) -> None:
            raise ZeroDivisionError

        world.kubelets._scheduler.on_change = broken  # type: ignore[assignment,method-assign]  # the fault
        await world.create(JOBSETS, plain())
        await world.until(PODS, lambda pods: len(running(pods)) == 1)

    with pytest.raises(ExceptionGroup) as failed:
        on_embedded(story)
    assert failed.group_contains(ZeroDivisionError, depth=2) or failed.group_contains(ZeroDivisionError)


@pytest.mark.parametrize("turn", [1, 2, 20, 40, 60, 80, 100])
async def test_a_cancellation_while_it_starts_or_stops_takes_effect_and_leaves_nothing_behind(turn: int) -> None:
    async def come_and_go() -> None:
        async with embedded_cluster(behaviour=QUICK):
            pass

    going = asyncio.create_task(come_and_go())
    for _ in range(turn):
        await asyncio.sleep(0)
    cancelled = going.cancel()
    await asyncio.wait([going])
    assert going.cancelled() is cancelled
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_cancellation_while_the_api_server_stops_takes_effect() -> None:
    for turns in range(12):
        server = ApiServer()
        await server.start()
        stopping = asyncio.create_task(server.stop())
        for _ in range(turns):
            await asyncio.sleep(0)
        cancelled = stopping.cancel()
        await asyncio.wait([stopping])
        assert stopping.cancelled() is cancelled
        await server.stop()


async def test_of_the_writes_of_one_object_that_wait_only_the_last_is_made() -> None:
    queue, done, begun, go = WriteQueue(4), asyncio.Queue[int](), asyncio.Event(), asyncio.Event()

    async def write(number: int) -> None:
        begun.set()
        await go.wait()
        done.put_nowait(number)

    queue.put("a", lambda: write(1))
    running = asyncio.create_task(queue.run())
    await begun.wait()
    queue.put("a", lambda: write(2))
    queue.put("a", lambda: write(3))
    go.set()
    assert [await done.get(), await done.get()] == [1, 3]
    running.cancel()
