"""A verdict that was written is not yet one that was read: only the client's close shows that (A6.2)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from controllers.barrier.stream.delivery import CLOSE_TIMEOUT
from jobset_gate.barrier import verdict_codec
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.gangs import verdict
from tests.fakes.gate_stream import TRAIN, ServedStream, serving, until

POD = "pod-workers-0-0"
TEXT = verdict_codec.render(verdict())


@pytest.fixture
async def gate(clock: VirtualClock) -> AsyncIterator[ServedStream]:
    async with serving(ServedStream(clock)) as made:
        assert made.add_pods(1) == [POD]
        yield made


@pytest.mark.parametrize("decided", [False, True], ids=["held before", "answered at once"])
async def test_one_that_never_closes_has_not_heard_and_its_gang_is_woken(
    gate: ServedStream, clock: VirtualClock, decided: bool
) -> None:
    """Its node is cut off: the kernel has taken the answer, and nothing ever comes back."""
    if decided:
        gate.store_verdict(verdict())
    await gate.connect_and_ask(POD)
    await until(lambda: gate.book.count_open("jobset") == 1 or POD in gate.delivered)
    await gate.book.answer_requests(TRAIN, verdict())
    since = clock()
    assert gate.delivered == {POD}, "it has a while to close"
    gate.woken_later.clear()
    await until(lambda: gate.outcomes == ["lost"])
    assert CLOSE_TIMEOUT <= clock() - since <= CLOSE_TIMEOUT + 2
    assert (gate.delivered, gate.book.count_open("jobset")) == (set(), 0)
    assert TRAIN in gate.woken_later


async def test_many_that_close_at_the_same_moment_are_released_a_few_at_a_time(
    gate: ServedStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever they do, other work gets its turn in between."""
    many = 350
    clients = [await (await gate.connect_and_ask(pod)).held() for pod in gate.add_pods(many)]
    await gate.book.answer_requests(TRAIN, verdict())
    assert [await client.verdict() for client in clients] == [TEXT] * many
    bursts, loop = [0], asyncio.get_running_loop()

    def count(*_: object) -> None:
        if not bursts[-1]:
            loop.call_soon(bursts.append, 0)
        bursts[-1] += 1

    monkeypatch.setattr(gate.stream, "on_outcome", count)
    await until(lambda: sum(bursts) == many)
    assert max(bursts) <= 100
