"""Our own ConfigMaps and the watch's news of them, in one: the real informer, index and gates on a scripted server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest
from aiohttp import web

from controllers.barrier import informers
from controllers.barrier.cache import GangCache
from controllers.barrier.verdict_store import VerdictStore
from jobset_gate.barrier.model import ConfigMapSeen, GangKey
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import CONFIGMAPS
from jobset_gate.runtime.store import ObjectChange
from tests.fakes.gangs import gang, jobset
from tests.fakes.scripted_server import ScriptedServer, refusal

TRAIN = GangKey("ns", "train")
MINE = jobset(namespace="ns")


class StoreWithInformer:
    """`woken` counts how often the gang was to be looked at."""

    def __init__(self, server: ScriptedServer, client: Client) -> None:
        self.server, self.woken = server, 0
        self._news = asyncio.Event()
        self.index = GangCache(self._wake, lambda _, __: None)
        every = informers.make_informers(client, self.index, None, namespace=None, on_problem=lambda _: None)
        self.informer = next(one for one in every if one.resource == CONFIGMAPS)
        self.gates = VerdictStore(client, self.index, informers.config_map_mutations(every))
        self.index.on_jobset(ObjectChange(TRAIN, None, MINE))
        self.woken = 0

    def gate(self) -> ConfigMapSeen | None:
        seen = self.index.snapshot(TRAIN)
        return None if seen is None else seen.config_map

    async def until_woken(self) -> None:
        while not self.woken:
            self._news.clear()
            await self._news.wait()

    async def create(self) -> None:
        """The gate is made, and the watch does not tell of it."""
        self.server.others.append(self.store)
        await self.gates.ensure_config_map(gang(jobset=MINE, config_map=None), None, None)

    async def store(self, request: web.Request) -> web.StreamResponse:
        body = await request.json()
        self.server.put(body["metadata"]["name"], tell=False)
        made = self.server.objects[body["metadata"]["name"]]
        made["metadata"] = body["metadata"] | made["metadata"]
        made["data"] = body["data"]
        return web.Response(body=msgspec.json.encode(made))

    def _wake(self, _: GangKey) -> None:
        self.woken += 1
        self._news.set()


@pytest.fixture
async def harness() -> AsyncIterator[StoreWithInformer]:
    server = ScriptedServer()
    await server.start()
    async with Client(Access(server.url)) as client, asyncio.TaskGroup() as tasks:
        made = StoreWithInformer(server, client)
        task = tasks.create_task(made.informer.run())
        await server.watched()
        yield made
        task.cancel()
    await server.stop()


async def test_a_gate_that_was_made_and_lost_before_the_watch_showed_it_is_missed(harness: StoreWithInformer) -> None:
    """The watch broke in that moment; only the list that follows can tell, and it does."""
    await harness.create()
    assert harness.gate() is not None
    harness.server.drop("train-group-scheduling", tell=False)
    harness.server.watches.append(refusal(410))
    harness.server.close_watches()
    await harness.until_woken()
    assert harness.gate() is None


async def test_a_gate_that_was_made_and_stays_wakes_nobody_when_a_list_shows_it(harness: StoreWithInformer) -> None:
    """Else each of our writes would cost a second pass over the gang's pods."""
    await harness.create()
    made = harness.gate()
    harness.server.send({"type": "ADDED", "object": harness.server.objects["train-group-scheduling"]})
    harness.server.watches.append(refusal(410))
    harness.server.close_watches()
    await harness.server.watched(3)
    assert (harness.gate(), harness.woken) == (made, 0)


async def test_an_answer_that_comes_after_the_news_of_the_end_is_not_believed(harness: StoreWithInformer) -> None:
    """A user deletes the gate while the answer to its creation is under way, and the watch tells of both first."""
    server = harness.server
    reached, answered = asyncio.Event(), asyncio.Event()

    async def slow(request: web.Request) -> web.StreamResponse:
        answer = await harness.store(request)
        reached.set()
        await answered.wait()
        return answer

    server.others.append(slow)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(harness.gates.ensure_config_map(gang(jobset=MINE, config_map=None), None, None))
        await reached.wait()
        server.send({"type": "ADDED", "object": server.objects["train-group-scheduling"]})
        await harness.until_woken()
        harness.woken = 0
        server.drop("train-group-scheduling")
        await harness.until_woken()
        answered.set()
    assert harness.gate() is None
