"""Pods that are gated alone ask with their own token, and only a pass over their gang answers them (K3, K5)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import pytest

from jobset_gate import names
from jobset_gate.kube.resources import PODS
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.gangs import verdict
from tests.fakes.gate_stream import MOMENT, ServedBook, StreamClient, serving, until
from tests.fakes.lws_controller import LwsController, leader_pod, worker_pod, worker_set
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.start_group_controller import (
    OWNER,
    PASSED,
    RING,
    RUNS,
    SPACE,
    StartGroupController,
    member,
    read_member,
)


class ServedGroup(ServedBook):
    """The stream of a controller of the group `ring`, whose pods `a`, `b`, ... have their names as UIDs."""

    def __init__(self, ring: StartGroupController) -> None:
        super().__init__(ring.waiters)
        self.ring = ring

    async def ask(self, pod: str, **changes: str) -> StreamClient:
        return await self.request(path(pod, **changes))

    async def release(self, *pods: str) -> list[str]:
        """These pods are there, ask, and a pass decides: what each is answered."""
        self.ring.show(*(member(pod) for pod in pods))
        clients = [await (await self.ask(pod)).held() for pod in pods]
        await self.ring.reconcile()
        return [await client.rest() for client in clients]


def path(pod: str, *, token: str = "", uid: str = "", namespace: str = SPACE) -> str:
    return f"/v1/pods/{namespace}/{token or f'token-of-{pod}'}/{uid or pod}/0/0/{pod}"


def release(pod: str, attempt: int) -> str:
    return f"release {pod} 0 {attempt} AllPodsStarted"


def first_lines(answers: list[str]) -> list[str]:
    return [answer.partition("\n")[0] for answer in answers]


async def is_held(client: StreamClient) -> bool:
    """No answer comes."""
    try:
        async with asyncio.timeout(MOMENT):
            await client.reader.read(1)
    except TimeoutError:
        return True
    return False


@pytest.fixture
async def gate(api: Api, memory: MemoryClient, clock: VirtualClock) -> AsyncIterator[ServedGroup]:
    async with serving(ServedGroup(StartGroupController(api, memory, clock))) as made:
        yield made


async def test_each_pod_is_answered_with_its_own_address_by_the_pass_that_decides(gate: ServedGroup) -> None:
    assert first_lines(await gate.release("a", "b")) == [release("a", 0), release("b", 0)]
    await until(lambda: gate.outcomes == ["told", "told"])
    assert {pod for _, pod in gate.book.deliveries} == {"a", "b"}, "neither needs a patch"


async def test_a_replaced_pod_is_answered_by_a_pass_that_its_request_causes(gate: ServedGroup) -> None:
    await gate.release("a", "b")
    gate.ring.remove("b")
    gate.ring.show(member("a", PASSED), member("c", RUNS))
    await gate.ring.reconcile()
    gate.ring.asked.clear()
    client = await (await gate.ask("c")).held()
    assert await is_held(client), "the request alone answers nothing"
    assert gate.ring.asked == [RING]
    await gate.ring.reconcile()
    assert first_lines([await client.rest()]) == [release("c", 0)]


async def test_a_pod_of_the_next_attempt_is_not_answered_by_the_old_verdict(gate: ServedGroup) -> None:
    await gate.release("a", "b")
    before = gate.ring.seen
    gate.ring.remove("a", "b")
    gate.ring.show(member("c"))
    first = await (await gate.ask("c")).held()
    await gate.book.answer_requests(RING, verdict(uid=OWNER), before.pods)
    assert await is_held(first), "a pass that has not seen it"
    for _ in range(2):
        await gate.ring.reconcile()
    assert await is_held(first), "passes that have seen it"
    gate.ring.show(member("d"))
    second = await (await gate.ask("d")).held()
    await gate.ring.reconcile()
    assert first_lines([await first.rest(), await second.rest()]) == [release("c", 1), release("d", 1)]


async def test_a_pod_that_is_on_its_way_out_is_not_answered(gate: ServedGroup) -> None:
    """Whether only a live read has shown it, or the watch as well."""
    gone = member("a", deletionTimestamp="2026-08-01T10:01:00Z")
    gate.ring.show(member("a"), member("b"))
    client = await (await gate.ask("a")).held()
    await gate.book.answer_requests(RING, verdict(uid=OWNER), [read_member(gone)])
    assert await is_held(client)
    gate.ring.show(gone)
    await gate.ring.reconcile()
    assert await client.rest() == ""


async def test_without_its_own_token_nobody_learns_which_pods_are_there(gate: ServedGroup) -> None:
    """The same answer, byte for byte, and the same in the metrics."""
    gate.ring.show(member("a"), member("b"), member("c", notes={names.TOKEN: ""}))
    answers = set()
    for where in (
        path("a", token="wrong"),
        path("a", token="token-of-b"),
        path("a", namespace="elsewhere"),
        path("a", uid="b"),
        path("a", uid="b", token="token-of-b"),
        path("c"),
        path("c", token="/").replace("//", "/"),
        path("unknown"),
    ):
        answers.add(await (await gate.request(where)).rest())
    assert len(answers) == 1
    assert next(iter(answers)).startswith("HTTP/1.1 403 ")
    assert set(gate.outcomes) == {"forbidden"}


@pytest.mark.parametrize(
    "where", [path("a").replace("/pods/", "/pods/work/"), path("a").replace("/pods/", "/gangs/"), "/v1/pods"]
)
async def test_another_shape_of_the_path_is_refused(gate: ServedGroup, where: str) -> None:
    gate.ring.show(member("a"))
    assert await (await gate.request(where)).status() == 400
    assert gate.outcomes == ["malformed"]


# --- Pods of a LeaderWorkerSet: only those of the present leader wait for its verdict ---------------------------------


class ServedLeaderWorkerSet(ServedBook):
    """The stream of a controller of the LeaderWorkerSet `vllm`."""

    def __init__(self, vllm: LwsController) -> None:
        super().__init__(vllm.waiters)
        self.vllm = vllm

    async def ask(self, uid: str) -> StreamClient:
        return await self.request(f"/v1/pods/{SPACE}/token-of-{uid}/{uid}/0/0/{uid}")


@pytest.fixture
async def workers(api: Api, memory: MemoryClient, clock: VirtualClock) -> AsyncIterator[ServedLeaderWorkerSet]:
    async with serving(ServedLeaderWorkerSet(LwsController(api, memory, clock))) as made:
        yield made


async def test_leader_and_worker_are_answered_each_with_its_own_address(workers: ServedLeaderWorkerSet) -> None:
    workers.vllm.show(worker_set(), leader_pod("A"), worker_pod(1))
    clients = [await (await workers.ask(uid)).held() for uid in ("A", "A-1")]
    await workers.vllm.reconcile()
    answers = [(await client.rest()).partition("\n")[0] for client in clients]
    assert answers == ["release A 0 0 AllPodsStarted", "release A-1 0 0 AllPodsStarted"]


async def test_a_worker_whose_stateful_set_is_unknown_is_refused_and_asks_again(workers: ServedLeaderWorkerSet) -> None:
    workers.vllm.put(worker_set(), leader_pod("A"), worker_pod(1))
    workers.vllm.watch(PODS)
    assert await (await workers.ask("A-1")).status() == 429
    workers.vllm.watch()
    await (await workers.ask("A-1")).held()
    assert set(workers.vllm.seen.announced) == {"A-1"}


async def test_a_worker_of_an_earlier_leader_is_sent_away_and_gets_no_verdict(workers: ServedLeaderWorkerSet) -> None:
    workers.vllm.show(worker_set(), leader_pod("A"), worker_pod(1))
    old = await (await workers.ask("A-1")).held()
    workers.vllm.remove("vllm-2")
    workers.vllm.show(leader_pod("B", size=1))
    new = await (await workers.ask("B")).held()
    await workers.vllm.reconcile()
    assert (await new.rest()).partition("\n")[0] == "release B 0 0 AllPodsStarted"
    assert await old.rest() == ""
    assert await (await workers.ask("A-1")).status() == 429
