"""A gate stream over real loopback sockets, its book and index, and clients that behave well or badly."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeVar
from urllib.parse import urlsplit

from controllers.barrier.cache import GangCache
from controllers.barrier.stream.delivery import DeliveryLog
from controllers.barrier.stream.registry import MAX_REQUESTS, WaiterRegistry
from controllers.barrier.stream.server import StreamServer
from jobset_gate.barrier import count
from jobset_gate.barrier.count import GangCount
from jobset_gate.barrier.model import GangKey, PodSeen, Verdict, WorkloadSeen
from jobset_gate.runtime.store import ObjectChange
from tests.fakes import gangs
from tests.fakes.background import in_background

TRAIN = GangKey("default", "train")
TOKEN = "t0ken"
Served = TypeVar("Served", bound="ServedBook")
MOMENT = 0.3
"""Virtual seconds, and long enough for packets on loopback to arrive."""


@dataclass(frozen=True, slots=True)
class FakePeer:
    """A pod's end of a request without any HTTP: `hear` gets what it is answered, or that it is dropped."""

    hear: Callable[[str], None]

    def send_answer(self, text: bytes) -> bool:
        self.hear(text.decode())
        return True

    def finish(self) -> None:
        """No test minds."""

    def disconnect(self) -> None:
        self.hear("dropped")


class ServedBook:
    """A stream of these requests, and its clients."""

    def __init__(self, book: WaiterRegistry, port: int = 0) -> None:
        self.book = book
        self.outcomes: list[str] = []
        self.stream = StreamServer(
            self.book, host="127.0.0.1", port=port, on_outcome=lambda _, outcome: self.outcomes.append(outcome)
        )
        self.clients: list[StreamClient] = []

    async def request(self, where: str) -> StreamClient:
        """A client that has made a barrier's request for this path."""
        client = await self.connect()
        client.send(f"GET {where} HTTP/1.1\r\nHost: gate\r\nUser-Agent: Wget\r\n\r\n")
        return client

    async def connect(self) -> StreamClient:
        where = urlsplit(self.stream.url)
        client = StreamClient(*await asyncio.open_connection(where.hostname, where.port))
        self.clients.append(client)
        return client


class ServedStream(ServedBook):
    """What the controller has of it."""

    def __init__(self, clock: Callable[[], float], *, most: int = MAX_REQUESTS, port: int = 0) -> None:
        self.woken: list[GangKey] = []
        self.woken_later: list[GangKey] = []
        delivered = DeliveryLog(clock)
        self.index = GangCache(self.woken.append, lambda key, _: self.woken_later.append(key), delivered)
        super().__init__(WaiterRegistry(self.index, clock, delivered, limit=most), port)
        self.set_jobset(gangs.jobset(token=TOKEN))

    def set_jobset(self, jobset: WorkloadSeen | None) -> None:
        self.index.on_workload(ObjectChange(("default", "train"), self.index.get_workload(TRAIN), jobset))

    def add_job(self) -> None:
        self.index.on_job(ObjectChange(("default", "train-workers-0"), None, gangs.job()))

    def add_pod(self, pod: PodSeen, old: PodSeen | None = None) -> None:
        self.index.on_pod(ObjectChange(("default", pod.name), old, pod))

    def store_verdict(self, verdict: Verdict) -> None:
        """The verdict stands in the gang's ConfigMap."""
        self.index.set_config_map(TRAIN, gangs.config_map(verdict=verdict))

    def add_pods(self, many: int) -> list[str]:
        """So many pods of the Job wait on their nodes; their UIDs."""
        pods = [gangs.waiting_pod(number) for number in range(many)]
        for pod in pods:
            self.add_pod(pod)
        return [pod.uid for pod in pods]

    @property
    def delivered(self) -> set[str]:
        """UIDs of the gang's pods that count as delivered."""
        return {pod for key, pod in self.book.deliveries if key == TRAIN}

    @property
    def since(self) -> dict[str, float]:
        """UIDs of the gang's pods that hold a request open at this moment, and since when."""
        seen = self.index.peek(TRAIN)
        return dict(seen.announced) if seen is not None else {}

    @property
    def announced(self) -> set[str]:
        return set(self.since)

    @property
    def tally(self) -> GangCount:
        seen = self.index.snapshot(TRAIN)
        assert seen is not None
        return count.count_gang(seen)

    async def connect_and_ask(self, pod: str = "pod-workers-0-0", **changes: str) -> StreamClient:
        return await self.request(path(pod, **changes))


@asynccontextmanager
async def serving(gate: Served) -> AsyncIterator[Served]:
    try:
        async with in_background(gate.stream.run()) as serving:
            await until(lambda: gate.stream.url != "" or serving.done())
            yield gate
    finally:
        for client in gate.clients:
            await client.close()


class StreamClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    def send(self, text: str) -> None:
        self.writer.write(text.encode())

    async def status(self) -> int:
        """Of the answer, whose headers are read."""
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert head.startswith(b"HTTP/1.")
        return int(head.split()[1])

    async def held(self) -> StreamClient:
        assert await self.status() == 200
        assert await self.reader.readline() == b"\n"
        return self

    async def rest(self) -> str:
        """All that comes until the server has said everything; then it closes, as a barrier's client does."""
        found = (await self.reader.read()).decode()
        self.writer.close()
        return found

    async def verdict(self) -> str:
        return (await self.rest()).lstrip("\n")

    async def close(self) -> None:
        self.writer.close()
        await asyncio.gather(self.writer.wait_closed(), return_exceptions=True)


def path(pod: str, *, gang: str = "default/train", token: str = TOKEN, generation: str = "u-1/0/0") -> str:
    return f"/v1/gangs/{gang}/{token}/{generation}/{pod}"


async def until(fact: Callable[[], bool]) -> None:
    """Waits until it is so; the test's own time limit says when it is not."""
    while not fact():  # noqa: ASYNC110 - what it waits for tells nobody, and virtual time costs nothing
        await asyncio.sleep(MOMENT)
