"""The work queue, in virtual time."""

import asyncio
import random

import pytest

from jobset_gate.runtime.clock import monotonic as now
from jobset_gate.runtime.workqueue import QueueMetrics, WorkQueue


@pytest.fixture
def queue() -> WorkQueue[str]:
    return WorkQueue(rng=random.Random(1))  # noqa: S311 - it must repeat


def ready(queue: WorkQueue[str]) -> list[str]:
    """All keys that can be had now, reconciled in no time."""

    async def drain() -> None:
        while queue.depth:
            keys.append(await queue.get())
            queue.done(keys[-1])

    keys: list[str] = []
    steps = drain()
    with pytest.raises(StopIteration):
        steps.send(None)
    return keys


async def test_keys_come_in_the_order_in_which_they_were_added_and_once(queue: WorkQueue[str]) -> None:
    for key in "abacab":
        queue.add(key)
    assert queue.depth == 3
    assert ready(queue) == ["a", "b", "c"]


async def test_a_key_at_a_worker_is_given_to_no_other_and_comes_again_if_it_was_added(queue: WorkQueue[str]) -> None:
    queue.add("a")
    assert await queue.get() == "a"
    queue.add("a")
    queue.add("a")
    assert queue.depth == 0
    queue.done("a")
    assert ready(queue) == ["a"]
    assert queue.depth == 0
    with pytest.raises(KeyError):
        queue.done("a")


async def test_a_worker_that_is_cancelled_while_it_waits_takes_no_key_with_it(queue: WorkQueue[str]) -> None:
    worker = asyncio.create_task(queue.get())
    await asyncio.sleep(0)
    queue.add("a")
    worker.cancel()
    await asyncio.wait([worker])
    assert ready(queue) == ["a"] or worker.result() == "a"


async def test_of_several_times_the_earliest_holds(queue: WorkQueue[str]) -> None:
    for seconds in (10, 5, 20):
        queue.add_after("a", seconds)
    assert (await queue.get(), now()) == ("a", 5)
    queue.done("a")
    await asyncio.sleep(100)
    assert queue.depth == 0
    queue.add_after("b", 0)
    queue.add_after("c", -1)
    assert ready(queue) == ["b", "c"]


async def test_an_immediate_add_leaves_the_timer(queue: WorkQueue[str]) -> None:
    """A pod's event now does not make the gang's timeout go away."""
    queue.add_after("a", 5)
    queue.add("a")
    queue.done(await queue.get())
    assert (await queue.get(), now()) == ("a", 5)


async def test_the_backoff_of_a_key_doubles_up_to_the_cap_until_it_is_forgotten(queue: WorkQueue[str]) -> None:
    waits = []
    for _ in range(20):
        start = now()
        waits.append(queue.add_rate_limited("a"))
        queue.done(await queue.get())
        assert now() - start == pytest.approx(waits[-1])
    ceilings = [min(60.0, 0.005 * 2**i) for i in range(20)]
    assert all(ceiling / 2 <= wait <= ceiling for wait, ceiling in zip(waits, ceilings, strict=True))
    assert len({wait / ceiling for wait, ceiling in zip(waits, ceilings, strict=True)}) > 10
    queue.forget("a")
    assert queue.add_rate_limited("a") <= 0.005
    for _ in range(10_000):
        assert queue.add_rate_limited("a") <= 60


async def test_metrics_have_the_seconds_of_waiting_and_working() -> None:
    retried: list[bool] = []
    waited: list[float] = []
    worked: list[float] = []
    metrics = QueueMetrics(
        added=lambda: None, retried=lambda: retried.append(True), waited=waited.append, worked=worked.append
    )
    queue: WorkQueue[str] = WorkQueue(metrics=metrics)
    queue.add("a")
    await asyncio.sleep(2)
    await queue.get()
    await asyncio.sleep(3)
    assert queue.unfinished_seconds == queue.longest_running_seconds == 3
    queue.done("a")
    queue.add_rate_limited("a")
    assert (waited, worked, retried) == ([2], [3], [True])


async def test_a_standby_drops_keys_and_enqueues_all_known_ones_when_it_is_elected() -> None:
    queue: WorkQueue[str] = WorkQueue(elected=False)
    queue.add("gone")
    queue.add_after("gone later", 1.0)
    assert (queue.depth, len(queue._timers)) == (0, 0)
    queue.start(["there", "waits"])
    queue.add("new")
    queue.add_after("later", 60.0)
    assert ready(queue) == ["there", "waits", "new"]
    assert len(queue._timers) == 1
