"""The gate streams of the played barriers: what barrier.sh does in the background beside its two files (A6).

One task and one socket per waiting barrier. It works in virtual time as well, as long as the server is in the same
process: heartbeats and pauses are timers of the loop.
"""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

from jobset_gate import names
from jobset_gate.fake.kubelet import barrier
from jobset_gate.fake.kubelet.barrier import BarrierExit, BarrierIdentity
from jobset_gate.fake.kubelet.behaviour import FaultScript
from jobset_gate.fake.kubelet.pods import KubeletPod
from jobset_gate.runtime.backoff import Backoff

SILENCE = 40.0
"""Seconds without a byte after which the connection is closed (wget -T)."""
FILES_FOR_OTHERS = 1000
_LONGEST_LINE = 64 * 1024


class StreamRefused(Exception):
    """Another status than 200, or no HTTP at all."""


class StreamingResponse:
    """The body of a response that the server keeps open, chunked or not."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, chunked: bool) -> None:
        self._reader, self._writer = reader, writer
        self._chunked = chunked
        self._buffer = b""
        self._ended = False

    def cut(self) -> None:
        """Break the connection: the body ends here."""
        self._writer.transport.abort()

    async def line(self) -> str:
        """The next line with its end, "" when there are no more."""
        while b"\n" not in self._buffer and not self._ended:
            await self._more()
        line, end, self._buffer = self._buffer.partition(b"\n")
        return (line + end).decode(errors="replace")

    async def rest(self, most: int) -> str:
        """The rest until the server closes, at most about so many bytes."""
        while not self._ended and len(self._buffer) < most:
            await self._more()
        return self._buffer[:most].decode(errors="ignore")

    async def _more(self) -> None:
        if not self._chunked:
            piece = await _read(self._reader.read(_LONGEST_LINE))
        else:
            size = int((await _read(self._reader.readline())).partition(b";")[0], 16)
            piece = (await _read(self._reader.readexactly(size + 2)))[:size]
        self._buffer += piece
        self._ended = not piece


@asynccontextmanager
async def open_stream(url: str) -> AsyncIterator[StreamingResponse]:
    """GET as wget does it. Errors: StreamRefused, OSError, EOFError, ValueError, TimeoutError."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port or 80, limit=_LONGEST_LINE)
    try:
        head = f"GET {place.path} HTTP/1.1\r\nHost: {place.netloc}\r\nConnection: close\r\n\r\n"
        writer.write(head.encode())
        yield StreamingResponse(reader, writer, chunked=await _read_head(reader))
    finally:
        # Not close(), which would wait for unsent data: the barrier's process is gone.
        writer.transport.abort()
        with suppress(OSError):
            await writer.wait_closed()


async def _read_head(reader: asyncio.StreamReader) -> bool:
    """Reads the status and the headers. True: the body comes in chunks."""
    lines = (await _read(reader.readuntil(b"\r\n\r\n"))).decode("latin-1").lower().splitlines()
    words = lines[0].split()
    if len(words) < 2 or words[1] != "200":
        raise StreamRefused(lines[0])
    return any(line.replace(" ", "") == "transfer-encoding:chunked" for line in lines[1:])


async def _read(reading: Awaitable[bytes]) -> bytes:
    async with asyncio.timeout(SILENCE):
        return await reading


class BarrierStream:
    """One barrier's request, repeated until a response decides; `on_exit` is called then."""

    def __init__(
        self,
        script: FaultScript,
        rng: random.Random,
        pod: Callable[[], KubeletPod],
        env: dict[str, str],
        on_exit: Callable[[BarrierExit], None],
    ) -> None:
        self._script, self._rng, self._pod, self._on_exit = script, rng, pod, on_exit
        self._own = own = BarrierIdentity.from_env(env)
        gang, uid = env.get(names.ENV_STREAM, ""), env.get(names.ENV_POD, "")
        self._url = f"{gang}/{own.uid}/{own.attempt}/{own.floor}/{uid}" if gang and own.uid else ""
        self._response: StreamingResponse | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> bool:
        """Whether the barrier has a URL."""
        return bool(self._url) and self._script.behaviour.stream

    def start(self) -> asyncio.Task[None]:
        self.task = asyncio.create_task(self._run(), name="gate stream")
        return self.task

    def close(self) -> None:
        """The barrier has ended, and its request with it."""
        if self.task is not None:
            self.task.cancel()

    def check(self) -> None:
        """Break the connection if a firewall is in the way now."""
        if self._response is not None and self._script.firewalled(self._pod()):
            self._response.cut()

    async def _run(self) -> None:
        first, longest = self._script.behaviour.stream_retry
        backoff = Backoff(first, longest, self._rng)
        while True:
            ending = None
            # Whatever fails here, the barrier still reads its files.
            with suppress(OSError, EOFError, ValueError, asyncio.LimitOverrunError, StreamRefused):
                if not self._script.firewalled(self._pod()):
                    ending = await self._request(backoff)
            if ending is not None:
                self._on_exit(ending)
                return
            await asyncio.sleep(backoff.next())

    async def _request(self, backoff: Backoff) -> BarrierExit | None:
        async with open_stream(self._url) as response:
            self._response = response
            try:
                backoff.reset()
                line = "\n"
                while line == "\n":
                    line = await response.line()
                if not line.endswith("\n"):
                    return None  # torn
                if not line.startswith("release "):  # the message of a timeout follows
                    line += await response.rest(barrier.LONGEST_MESSAGE)
                return barrier.read_verdict(self._own, [line])
            finally:
                self._response = None


class BarrierStreams:
    """All of them, as far as the process may open files: the server's ends may be among them.

    A barrier beyond that limit has no stream, like one behind a firewall.
    """

    def __init__(self, script: FaultScript, seed: int) -> None:
        # Their own generator: how often a stream is opened depends on sockets, and the rest must be repeatable.
        self._script, self._rng = script, random.Random(seed)
        self._streams: set[BarrierStream] = set()
        self._room = max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_FOR_OTHERS) // 2

    def __len__(self) -> int:
        """Barriers with an open request, or between two."""
        return len(self._streams)

    def hold(
        self, pod: Callable[[], KubeletPod], env: dict[str, str], on_exit: Callable[[BarrierExit], None]
    ) -> BarrierStream | None:
        """A stream for a barrier with this environment; None if it has none."""
        stream = BarrierStream(self._script, self._rng, pod, env, on_exit)
        if not stream.wanted or len(self._streams) >= self._room:
            return None
        self._streams.add(stream)
        stream.start().add_done_callback(lambda _: self._streams.discard(stream))
        return stream

    def check(self) -> None:
        """A fault was injected: it may be a firewall."""
        for stream in list(self._streams):
            stream.check()

    async def stop(self) -> None:
        streams = list(self._streams)
        for stream in streams:
            stream.close()
        await asyncio.gather(*(stream.task for stream in streams if stream.task), return_exceptions=True)
