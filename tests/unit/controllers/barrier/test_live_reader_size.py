"""Events that a tenant has written: however many and long they are, reading them takes a bounded amount of memory."""

from __future__ import annotations

import msgspec

from controllers.barrier.live_reader import LiveReader
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from tests.fakes.large_lists import LargeListServer, peak
from tests.fakes.scripted_server import ScriptedServer


def event(job: str, message: str) -> bytes:
    return msgspec.json.encode({"involvedObject": {"kind": "Job", "name": job}, "message": message})


async def test_150_events_of_almost_etcds_limit_cost_the_memory_of_one() -> None:
    large = event("train-workers-1", "x" * 1_400_000)
    every = LargeListServer([event("train-workers-0", "exceeded quota: pods"), *([large] * 150)])
    found: dict[str, str] = {}

    async def read(client: Client) -> None:
        found.update(await LiveReader(client).list_denials("ns"))

    async with ScriptedServer() as server, Client(Access(server.url)) as client:
        server.lists.extend([every] * 100)
        assert await peak(read(client)) < 16
    assert found["train-workers-0"] == "exceeded quota: pods"
