"""The gate streams of the simulated barriers: what barrier.sh does in the background beside its two files (A6).

One task and one socket per barrier that waits. It works in virtual time as well, as long as the server is in the same
process: heartbeats and pauses are timers of the loop.
"""

from __future__ import annotations

import asyncio
import random
import resource
from collections.abc import Callable

from jobset_gate import names
from jobset_gate.fake import barrier_rule
from jobset_gate.fake.barrier_rule import BarrierExit, BarrierIdentity
from jobset_gate.fake.kubelet.behaviour import FaultScript
from jobset_gate.fake.kubelet.pods import KubeletPod
from jobset_gate.fake.kubelet.streaming_response import StreamingResponse, StreamRefused, open_stream
from jobset_gate.runtime.backoff import Backoff

Pod = Callable[[], KubeletPod]
"""The pod as it is now."""
Hear = Callable[[BarrierExit], None]

FILES_FOR_OTHERS = 1000


class BarrierStream:
    """One barrier's request, made again and again until its answer binds the barrier; `hear` is told then."""

    def __init__(self, script: FaultScript, rng: random.Random, pod: Pod, env: dict[str, str], hear: Hear) -> None:
        self._script, self._rng, self._pod, self._hear = script, rng, pod, hear
        self._own = own = BarrierIdentity.from_env(env)
        gang, uid = env.get(names.ENV_STREAM, ""), env.get(names.ENV_POD, "")
        self._url = f"{gang}/{own.uid}/{own.attempt}/{own.floor}/{uid}" if gang and own.uid else ""
        self._held: StreamingResponse | None = None
        self.task: asyncio.Task[None] | None = None

    @property
    def wanted(self) -> bool:
        """Whether the barrier knows where to ask."""
        return bool(self._url) and self._script.behaviour.stream

    def start(self) -> asyncio.Task[None]:
        self.task = asyncio.create_task(self._run(), name="gate stream")
        return self.task

    def close(self) -> None:
        """The barrier has ended, and its request with it."""
        if self.task is not None:
            self.task.cancel()

    def check(self) -> None:
        """A firewall may be in the way from now on: nothing passes any more, in either direction."""
        if self._held is not None and self._script.firewalled(self._pod()):
            self._held.cut()

    async def _run(self) -> None:
        first, longest = self._script.behaviour.stream_retry
        backoff = Backoff(first, longest, self._rng)
        while True:
            ending = None
            try:
                if not self._script.firewalled(self._pod()):
                    ending = await self._ask(backoff)
            except (OSError, EOFError, ValueError, asyncio.LimitOverrunError, StreamRefused):
                pass  # whatever is wrong out there, the files go on and so do we
            if ending is not None:
                self._hear(ending)
                return
            await asyncio.sleep(backoff.next())

    async def _ask(self, backoff: Backoff) -> BarrierExit | None:
        async with open_stream(self._url) as body:
            self._held = body
            try:
                backoff.reset()
                line = "\n"
                while line == "\n":
                    line = await body.line()
                if not line.endswith("\n"):
                    return None  # torn
                if not line.startswith("release "):  # a timeout's message is what follows
                    line += await body.rest(barrier_rule.LONGEST_MESSAGE)
                return barrier_rule.read_verdict(self._own, [line])
            finally:
                self._held = None


class BarrierStreams:
    """All of them.

    A process may have only so many files open, and the server's ends may be among them: when there is no room, a
    barrier does without, as one behind a firewall does.
    """

    def __init__(self, script: FaultScript, seed: int) -> None:
        # A chance of their own: how often a stream is asked for depends on sockets, and the rest shall be repeatable.
        self._script, self._rng = script, random.Random(seed)
        self._streams: set[BarrierStream] = set()
        self._room = max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_FOR_OTHERS) // 2

    def __len__(self) -> int:
        """Barriers that hold a request or try to."""
        return len(self._streams)

    def hold(self, pod: Pod, env: dict[str, str], hear: Hear) -> BarrierStream | None:
        """A stream for a barrier with this environment; None if it has none."""
        stream = BarrierStream(self._script, self._rng, pod, env, hear)
        if not stream.wanted or len(self._streams) >= self._room:
            return None
        self._streams.add(stream)
        stream.start().add_done_callback(lambda _: self._streams.discard(stream))
        return stream

    def check(self) -> None:
        """Trouble has begun: it may be a firewall."""
        for stream in list(self._streams):
            stream.check()

    async def stop(self) -> None:
        """Closes all."""
        streams = list(self._streams)
        for stream in streams:
            stream.close()
        await asyncio.gather(*(stream.task for stream in streams if stream.task), return_exceptions=True)
