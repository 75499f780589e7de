"""The gate streams of the simulated barriers: what barrier.sh does in the background while it polls its two files (A6).

One task and one socket per waiting barrier. It works in virtual time as well, as long as the server is in the same
process: heartbeats and pauses are timers of the loop.
"""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import Callable
from contextlib import suppress

import aiohttp

from jobset_gate import names
from jobset_gate.fake.kubelet import barrier
from jobset_gate.fake.kubelet.barrier import BarrierExit, BarrierIdentity
from jobset_gate.fake.kubelet.pods import FaultScript
from jobset_gate.runtime.flowcontrol import Backoff

SILENCE = 40.0
"""Seconds without a byte after which the connection is closed (wget -T)."""
FILES_FOR_OTHERS = 1000


class BarrierStream:
    """One barrier's request, repeated until a response decides; `on_exit` is called then."""

    def __init__(self, url: str, own: BarrierIdentity, on_exit: Callable[[BarrierExit], None]) -> None:
        self._url, self._own, self._on_exit = url, own, on_exit
        self._task: asyncio.Task[None] | None = None

    async def stop(self) -> None:
        """Break the connection, if there is one, and try no more."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])

    def cancel(self) -> None:
        """The barrier has ended, and its request with it."""
        if self._task is not None:
            self._task.cancel()

    def start(self, session: aiohttp.ClientSession, script: FaultScript, rng: random.Random) -> None:
        self._task = asyncio.create_task(self._run(session, script, rng), name="gate stream")

    async def _run(self, session: aiohttp.ClientSession, script: FaultScript, rng: random.Random) -> None:
        backoff = Backoff(*script.behaviour.stream_retry, rng)
        while True:
            ending = None
            # Whatever fails here, the barrier still reads its files.
            with suppress(aiohttp.ClientError, OSError, ValueError):
                ending = await self._request(session, backoff)
            if ending is not None:
                self._on_exit(ending)
                return
            await asyncio.sleep(backoff.next())

    async def _request(self, session: aiohttp.ClientSession, backoff: Backoff) -> BarrierExit | None:
        async with session.get(self._url, raise_for_status=True) as response:
            backoff.reset()
            line = b"\n"
            while line == b"\n":
                line = await response.content.readline()
            if not line.endswith(b"\n"):
                return None  # torn
            if not line.startswith(b"release "):  # the message of a timeout follows
                line += (await response.content.read())[: barrier.LONGEST_MESSAGE]
            return barrier.read_verdict(self._own, [line.decode(errors="ignore")])


class BarrierStreams:
    """All of them, as far as the process may open files: the server's ends may be among them.

    A barrier beyond that limit has no stream, like one behind a firewall.
    """

    def __init__(self, script: FaultScript, seed: int) -> None:
        # Their own generator: how often a stream is opened depends on sockets, and the rest must be repeatable.
        self._script, self._rng = script, random.Random(seed)
        self._streams: set[BarrierStream] = set()
        self._room = max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_FOR_OTHERS) // 2
        self._session: aiohttp.ClientSession | None = None

    def hold(self, env: dict[str, str], on_exit: Callable[[BarrierExit], None]) -> BarrierStream | None:
        """A stream for a barrier with this environment; None if it has none."""
        own = BarrierIdentity.from_env(env)
        gang, uid = env.get(names.ENV_STREAM, ""), env.get(names.ENV_POD, "")
        wanted = bool(gang and own.uid) and self._script.behaviour.stream
        if not wanted or len(self._streams) >= self._room:
            return None
        stream = BarrierStream(f"{gang}/{own.uid}/{own.attempt}/{own.floor}/{uid}", own, on_exit)
        self._streams.add(stream)
        stream.start(self._open_session(), self._script, self._rng)
        return stream

    def close(self, stream: BarrierStream) -> None:
        """Its barrier has ended."""
        self._streams.discard(stream)
        stream.cancel()

    async def stop(self) -> None:
        await asyncio.gather(*(stream.stop() for stream in self._streams))
        if self._session is not None:
            await self._session.close()

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENCE)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._session
