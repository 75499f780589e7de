"""Pods of a LeaderWorkerSet on the gate stream: only those of the present leader wait for its verdict (K3, K5)."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from jobset_gate.kube.resources import PODS
from jobset_gate_demo.fake.clock import VirtualClock
from tests.fakes.gate_stream import ServedBook, StreamClient, serving
from tests.fakes.lws_controller import LwsController, leader_pod, worker_pod, worker_set
from tests.fakes.memory_api import Api
from tests.fakes.memory_client import MemoryClient
from tests.fakes.start_group_controller import SPACE


class ServedGroup(ServedBook):
    """The stream of a controller of the LeaderWorkerSet `vllm`."""

    def __init__(self, vllm: LwsController) -> None:
        super().__init__(vllm.waiters)
        self.vllm = vllm

    async def ask(self, uid: str) -> StreamClient:
        return await self.request(f"/v1/pods/{SPACE}/token-of-{uid}/{uid}/0/0/{uid}")


@pytest.fixture
async def gate(api: Api, memory: MemoryClient, clock: VirtualClock) -> AsyncIterator[ServedGroup]:
    async with serving(ServedGroup(LwsController(api, memory, clock))) as made:
        yield made


async def test_leader_and_worker_are_answered_each_with_its_own_address(gate: ServedGroup) -> None:
    gate.vllm.show(worker_set(), leader_pod("A"), worker_pod(1))
    clients = [await (await gate.ask(uid)).held() for uid in ("A", "A-1")]
    await gate.vllm.reconcile()
    answers = [(await client.rest()).partition("\n")[0] for client in clients]
    assert answers == ["release A 0 0 AllPodsStarted", "release A-1 0 0 AllPodsStarted"]


async def test_a_worker_whose_stateful_set_is_unknown_is_refused_and_asks_again(gate: ServedGroup) -> None:
    gate.vllm.put(worker_set(), leader_pod("A"), worker_pod(1))
    gate.vllm.watch(PODS)
    assert await (await gate.ask("A-1")).status() == 429
    gate.vllm.watch()
    await (await gate.ask("A-1")).held()
    assert set(gate.vllm.seen.announced) == {"A-1"}


async def test_a_worker_of_an_earlier_leader_is_sent_away_and_gets_no_verdict(gate: ServedGroup) -> None:
    gate.vllm.show(worker_set(), leader_pod("A"), worker_pod(1))
    old = await (await gate.ask("A-1")).held()
    gate.vllm.remove("vllm-2")
    gate.vllm.show(leader_pod("B", size=1))
    new = await (await gate.ask("B")).held()
    await gate.vllm.reconcile()
    assert (await new.rest()).partition("\n")[0] == "release B 0 0 AllPodsStarted"
    assert await old.rest() == ""
    assert await (await gate.ask("A-1")).status() == 429
