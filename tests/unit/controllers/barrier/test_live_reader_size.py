"""Events that a tenant has written: however many and long they are, reading them takes a bounded amount of memory."""

from __future__ import annotations

from collections import deque

import msgspec

from controllers.barrier.live_reader import LiveReader
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from tests.fakes.large_lists import LargeListServer, peak
from tests.fakes.scripted_server import ScriptedServer


def event(job: str, message: str) -> bytes:
    return msgspec.json.encode({"involvedObject": {"kind": "Job", "name": job}, "message": message})


async def test_150_events_of_almost_etcds_limit_cost_the_memory_of_one() -> None:
    server = ScriptedServer()
    await server.start()
    large = event("train-workers-1", "x" * 1_400_000)
    server.lists = deque([LargeListServer([event("train-workers-0", "exceeded quota: pods"), *([large] * 150)])] * 100)
    found: dict[str, str] = {}

    async def read(client: Client) -> None:
        found.update(await LiveReader(client).list_denials("ns"))

    try:
        async with Client(Access(server.url)) as client:
            assert await peak(read(client)) < 16
    finally:
        await server.stop()
    assert found["train-workers-0"] == "exceeded quota: pods"
