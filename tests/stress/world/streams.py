"""The gate streams of this world: barriers that hold requests open at a controller, which may break or swallow news."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from controllers.barrier.stream.delivery import CLOSE_TIMEOUT
from controllers.barrier.stream.registry import RequestRefused, StreamRequest, WaiterRegistry
from tests.fakes.instant_loop import InstantLoop
from tests.fakes.memory_api import Json
from tests.stress.world.cluster import Cluster
from tests.stress.world.replica import Replica


@dataclass(slots=True, eq=False)
class FakeConnection:
    """A barrier's request at one controller process."""

    streams: FakeStreams
    pod: str
    """Its UID."""
    replica: Replica
    book: WaiterRegistry
    """Of the process that holds it; another process of the same replica knows nothing of it."""
    swallows: bool = False
    """What is reported does not arrive, and nobody notices."""
    request: StreamRequest | None = None
    holds: bool = False
    """It was not answered when it came."""

    def send_answer(self, text: bytes) -> bool:
        self.streams.spoken(self, text)
        return True

    def finish(self) -> None:
        """The barrier closes once it has read; of one that reads nothing, the controller notices so after a while."""
        loop = asyncio.get_running_loop()
        if self.swallows:
            loop.call_later(CLOSE_TIMEOUT, self.streams.leave, self)
        else:
            loop.call_soon(self._close)

    def disconnect(self) -> None:
        """The controller hangs up."""
        self.streams.leave(self)

    def _close(self) -> None:
        if self.request is not None:
            self.book.acknowledge_request(self.request)
        self.streams.leave(self)


class FakeStreams:
    """All lines."""

    def __init__(self, cluster: Cluster, loop: InstantLoop) -> None:
        self._cluster, self._loop = cluster, loop
        self._lines: list[FakeConnection] = []

    def ask(self, pod: Json, replica: Replica) -> None:
        """The barrier asks this controller; whether or not it asks another already."""
        if not replica.alive:
            return
        line = FakeConnection(self, pod["metadata"]["uid"], replica, replica.book)
        key, token, generation = self._cluster.request(pod)

        def admit() -> None:
            try:
                line.request = line.book.admit_request(key, token, generation, line.pod, line)
            except RequestRefused:
                return  # it asks again some time
            self._lines.append(line)
            if not line.request.answered:
                replica.held[line.pod] += 1
                line.holds = True

        self._loop.do(admit)

    def break_off(self, number: int) -> None:
        """One line breaks, and its controller notices."""
        lines = self._present()
        if lines:
            self._end(lines[number % len(lines)])

    def swallow(self, number: int) -> None:
        """One line is dead, and its controller does not notice yet."""
        lines = self._present()
        if lines:
            lines[number % len(lines)].swallows = True

    def end_of_the_dead(self) -> None:
        """Controllers notice at last who is gone."""
        running = {pod["metadata"]["uid"] for pod in self._cluster.waiting()}
        for line in self._present():
            if line.swallows or line.pod not in running:
                self._end(line)

    def _present(self) -> list[FakeConnection]:
        """Those whose controller is still the same process."""
        self._lines = [line for line in self._lines if line.replica.alive and line.replica.book is line.book]
        return self._lines

    def _end(self, line: FakeConnection) -> None:
        self._loop.do(lambda: self.leave(line))

    def spoken(self, line: FakeConnection, text: bytes) -> None:
        """The controller says this on the line."""
        if not line.swallows:
            for pod in self._cluster.waiting():
                if pod["metadata"]["uid"] == line.pod:
                    self._cluster.look(pod, text.decode(), tell=False)

    def leave(self, line: FakeConnection) -> None:
        """The controller notices that the line has ended."""
        if line in self._lines and line.request is not None:
            self._lines.remove(line)
            line.replica.held[line.pod] -= line.holds
            line.book.remove_request(line.request)
