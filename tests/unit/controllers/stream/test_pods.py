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
    """The stream of a controller, whose pods have their names as UIDs."""

    def __init__(self, controller: StartGroupController) -> None:
        super().__init__(controller.waiters)
        self.controller = controller

    async def ask(self, pod: str) -> StreamClient:
        return await self.request(path(pod))

    async def hold(self, *pods: str) -> list[StreamClient]:
        return [await (await self.ask(pod)).held() for pod in pods]

    async def answers(self, clients: list[StreamClient]) -> list[str]:
        """What a pass answers: the first line."""
        await self.controller.reconcile()
        return [(await client.rest()).partition("\n")[0] for client in clients]

    async def release(self, *pods: str) -> list[str]:
        """These pods of `ring` are there, ask, and a pass decides: what each is answered."""
        self.controller.show(*(member(pod) for pod in pods))
        return await self.answers(await self.hold(*pods))


def path(pod: str, *, token: str = "", uid: str = "", namespace: str = SPACE) -> str:
    return f"/v1/pods/{namespace}/{token or f'token-of-{pod}'}/{uid or pod}/0/0/{pod}"


def release(pod: str, attempt: int) -> str:
    return f"release {pod} 0 {attempt} AllPodsStarted"


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
    assert await gate.release("a", "b") == [release("a", 0), release("b", 0)]
    await until(lambda: gate.outcomes == ["told", "told"])
    assert {pod for _, pod in gate.book.deliveries} == {"a", "b"}, "neither needs a patch"


async def test_a_replaced_pod_is_answered_by_a_pass_that_its_request_causes(gate: ServedGroup) -> None:
    await gate.release("a", "b")
    gate.controller.remove("b")
    await gate.controller.reconcile(member("a", PASSED), member("c", RUNS))
    gate.controller.asked.clear()
    (client,) = await gate.hold("c")
    assert await is_held(client), "the request alone answers nothing"
    assert gate.controller.asked == [RING]
    assert await gate.answers([client]) == [release("c", 0)]


async def test_a_pod_of_the_next_attempt_is_not_answered_by_the_old_verdict(gate: ServedGroup) -> None:
    await gate.release("a", "b")
    before = gate.controller.seen
    gate.controller.remove("a", "b")
    gate.controller.show(member("c"))
    (first,) = await gate.hold("c")
    await gate.book.answer_requests(RING, verdict(uid=OWNER), before.pods)
    assert await is_held(first), "a pass that has not seen it"
    for _ in range(2):
        await gate.controller.reconcile()
    assert await is_held(first), "passes that have seen it"
    gate.controller.show(member("d"))
    assert await gate.answers([first, *await gate.hold("d")]) == [release("c", 1), release("d", 1)]


async def test_a_pod_that_is_on_its_way_out_is_not_answered(gate: ServedGroup) -> None:
    """Whether only a live read has shown it, or the watch as well."""
    gone = member("a", deletionTimestamp="2026-08-01T10:01:00Z")
    gate.controller.show(member("a"), member("b"))
    (client,) = await gate.hold("a")
    await gate.book.answer_requests(RING, verdict(uid=OWNER), [read_member(gone)])
    assert await is_held(client)
    await gate.controller.reconcile(gone)
    assert await client.rest() == ""


async def test_without_its_own_token_nobody_learns_which_pods_are_there(gate: ServedGroup) -> None:
    """The same answer, byte for byte, and the same in the metrics."""
    gate.controller.show(*(member(it) for it in ("a", "b", "gone")), member("c", notes={names.TOKEN: ""}))
    gate.controller.remove("gone")
    gate.controller.watch()
    refused = (
        path("a", token="wrong"),
        path("a", token="token-of-b"),
        path("a", namespace="elsewhere"),
        path("a", uid="b"),
        path("a", uid="b", token="token-of-b"),
        path("c"),
        path("c", token="/").replace("//", "/"),
        path("unknown"),
        path("gone"),
    )
    answers = {await (await gate.request(where)).rest() for where in refused}
    assert len(answers) == 1
    assert next(iter(answers)).startswith("HTTP/1.1 403 ")
    assert set(gate.outcomes) == {"forbidden"}


@pytest.mark.parametrize(
    "where", [path("a").replace("/pods/", "/pods/work/"), path("a").replace("/pods/", "/gangs/"), "/v1/pods"]
)
async def test_another_shape_of_the_path_is_refused(gate: ServedGroup, where: str) -> None:
    gate.controller.show(member("a"))
    assert await (await gate.request(where)).status() == 400
    assert gate.outcomes == ["malformed"]


# --- Pods of a LeaderWorkerSet: only those of the present leader wait for its verdict ---------------------------------


@pytest.fixture
async def workers(api: Api, memory: MemoryClient, clock: VirtualClock) -> AsyncIterator[ServedGroup]:
    """Of the LeaderWorkerSet `vllm`."""
    async with serving(ServedGroup(LwsController(api, memory, clock))) as made:
        yield made


async def test_leader_and_worker_are_answered_each_with_its_own_address(workers: ServedGroup) -> None:
    workers.controller.show(worker_set(), leader_pod("A"), worker_pod(1))
    assert await workers.answers(await workers.hold("A", "A-1")) == [release("A", 0), release("A-1", 0)]


async def test_a_worker_whose_stateful_set_is_unknown_is_refused_and_asks_again(workers: ServedGroup) -> None:
    workers.controller.put(worker_set(), leader_pod("A"), worker_pod(1))
    workers.controller.watch(PODS)
    assert await (await workers.ask("A-1")).status() == 429
    workers.controller.watch()
    await workers.hold("A-1")
    assert set(workers.controller.seen.announced) == {"A-1"}


async def test_a_worker_of_an_earlier_leader_is_sent_away_and_gets_no_verdict(workers: ServedGroup) -> None:
    workers.controller.show(worker_set(), leader_pod("A"), worker_pod(1))
    (old,) = await workers.hold("A-1")
    workers.controller.remove("vllm-2")
    workers.controller.show(leader_pod("B", size=1))
    assert await workers.answers([*await workers.hold("B"), old]) == [release("B", 0), ""]
    assert await (await workers.ask("A-1")).status() == 429
