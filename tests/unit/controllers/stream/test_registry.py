"""An open request says that its pod's barrier runs: it counts as long as it is open, and once (A4)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from controllers.barrier.stream.delivery import CLOSE_TIMEOUT, KEEP_SECONDS
from controllers.barrier.stream.registry import StreamRequest
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import Generation
from jobset_gate.runtime.store import ObjectChange
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes import gangs
from tests.fakes.gangs import verdict, waiting_pod
from tests.fakes.gate_stream import TOKEN, TRAIN, FakePeer, ServedStream, serving, until

PODS = ("pod-workers-0-0", "pod-workers-0-1")


@pytest.fixture
async def gate(clock: VirtualClock) -> AsyncIterator[ServedStream]:
    """Of a gang of two, whose Job exists."""
    async with serving(ServedStream(clock)) as made:
        made.add_job()
        yield made


# --- Counting -------------------------------------------------------------------------------------------------------


async def test_a_pod_counts_while_its_request_is_open(gate: ServedStream) -> None:
    gate.add_pod(waiting_pod(0))
    assert gate.tally.started == 0
    client = await (await gate.connect_and_ask(PODS[0])).held()
    assert gate.tally.started == 1
    await client.close()
    await until(lambda: not gate.announced)
    assert gate.tally.started == 0, "lost before the status confirmed it"


async def test_a_pod_may_announce_itself_before_it_is_known(gate: ServedStream) -> None:
    await (await gate.connect_and_ask(PODS[0])).held()
    assert gate.tally.started == 0
    gate.index.set_missing_count(TRAIN, 1)
    gate.woken.clear()
    gate.add_pod(waiting_pod(0))
    assert (gate.tally.started, gate.woken) == (1, [TRAIN])


async def test_a_pod_that_reconnects_is_announced_all_the_time(gate: ServedStream, clock: VirtualClock) -> None:
    gate.add_pod(waiting_pod(0))
    first = await (await gate.connect_and_ask(PODS[0])).held()
    since = gate.since
    await asyncio.sleep(5)
    second = await (await gate.connect_and_ask(PODS[0])).held()
    assert (gate.tally.started, gate.book.count_open("jobset")) == (1, 2)
    await first.close()
    await until(lambda: gate.book.count_open("jobset") == 1)
    assert (gate.tally.started, gate.since) == (1, since), "one announcement, as old as its first"
    await second.close()
    await until(lambda: gate.book.count_open("jobset") == 0)
    assert gate.tally.started == 0


async def test_a_gang_that_is_gone_takes_no_memory_once_its_requests_have_ended(gate: ServedStream) -> None:
    client = await (await gate.connect_and_ask(PODS[0])).held()
    gate.set_jobset(None)
    gate.index.on_job(ObjectChange(("default", "train-workers-0"), gangs.job(), None))
    assert len(gate.index) == 1
    await client.close()
    await until(lambda: not gate.book.count_open("jobset"))
    assert len(gate.index) == 0


# --- Only the client's close shows that it has read the verdict (A6.2) -----------------------------------------------


@pytest.mark.parametrize("decided", [False, True], ids=["held before", "answered at once"])
async def test_one_that_never_closes_has_not_heard_and_its_gang_is_woken(
    gate: ServedStream, clock: VirtualClock, decided: bool
) -> None:
    """Its node is cut off: the kernel has taken the answer, and nothing ever comes back."""
    (pod,) = gate.add_pods(1)
    if decided:
        gate.store_verdict(verdict())
    await gate.connect_and_ask(pod)
    await until(lambda: gate.book.count_open("jobset") == 1 or pod in gate.delivered)
    await gate.book.answer_requests(TRAIN, verdict())
    since = clock()
    assert gate.delivered == {pod}, "it has a while to close"
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
    assert [await client.verdict() for client in clients] == [verdict_codec.render(verdict())] * many
    bursts, loop = [0], asyncio.get_running_loop()

    def count(*_: object) -> None:
        if not bursts[-1]:
            loop.call_soon(bursts.append, 0)
        bursts[-1] += 1

    monkeypatch.setattr(gate.stream, "on_outcome", count)
    await until(lambda: sum(bursts) == many)
    assert max(bursts) <= 100


# --- Answered pods


@pytest.fixture
async def unserved(clock: VirtualClock) -> ServedStream:
    """Requests of a gang of two without any HTTP."""
    made = ServedStream(clock)
    made.add_pods(len(PODS))
    return made


def ask(gate: ServedStream, pod: str) -> StreamRequest:
    return gate.book.admit_request(TRAIN, TOKEN, Generation("u-1", 0, 0), pod, FakePeer(lambda _: None))


async def test_all_that_are_being_answered_are_known_before_the_first_has_heard(
    unserved: ServedStream, clock: VirtualClock
) -> None:
    """So that none of them is patched meanwhile."""
    for pod in PODS:
        ask(unserved, pod)
    telling = asyncio.create_task(unserved.book.answer_requests(TRAIN, verdict()))
    await asyncio.sleep(0)
    assert dict(unserved.book.deliveries.items()) == {(TRAIN, pod): clock() for pod in PODS}
    await telling


@pytest.mark.parametrize("dead_one_ends_first", [False, True])
async def test_of_a_pods_two_lines_one_that_was_heard_is_enough(
    unserved: ServedStream, dead_one_ends_first: bool
) -> None:
    """It had to reconnect, and the old line is dead without anybody's having noticed."""
    dead, alive = ask(unserved, PODS[0]), ask(unserved, PODS[0])
    await unserved.book.answer_requests(TRAIN, verdict())
    if dead_one_ends_first:
        unserved.book.remove_request(dead)
        assert unserved.delivered == {PODS[0]}, "the other may still be heard"
    unserved.book.acknowledge_request(alive)
    unserved.book.remove_request(alive)
    if not dead_one_ends_first:
        unserved.book.remove_request(dead)
    assert unserved.delivered == {PODS[0]}


async def test_a_pod_is_answered_since_its_first_answer(unserved: ServedStream, clock: VirtualClock) -> None:
    """One that asks again and again without acting must not be thought answered for ever."""
    unserved.store_verdict(verdict())
    since = clock()
    for _ in range(3):
        request = ask(unserved, PODS[0])
        assert request.answered
        unserved.book.acknowledge_request(request)
        unserved.book.remove_request(request)
        await asyncio.sleep(10)
    assert dict(unserved.book.deliveries.items()) == {(TRAIN, PODS[0]): since}


async def test_an_answer_is_forgotten_after_a_while(unserved: ServedStream) -> None:
    for pod in PODS:
        ask(unserved, pod)
        await unserved.book.answer_requests(TRAIN, verdict())
        await asyncio.sleep(KEEP_SECONDS / 2 + 1)
    unserved.book.deliveries.expire_deliveries()
    assert unserved.delivered == {PODS[1]}
    await asyncio.sleep(KEEP_SECONDS)
    unserved.book.deliveries.expire_deliveries()
    assert not unserved.delivered
