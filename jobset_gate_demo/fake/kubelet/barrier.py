"""The barrier of one pod: which of the texts it reads decides (contract A5, A6, A7), its limit, and its gate stream.

The rule differs from barrier.sh for texts that jobset-gate never writes: a shell drops NUL bytes, and compares epochs
of ten or more digits as far as its own numbers go.
"""

from __future__ import annotations

import asyncio
import random
import resource
from collections import defaultdict
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

import aiohttp

from jobset_gate import names
from jobset_gate.barrier.verdict_codec import parse_epoch, parse_number
from jobset_gate.runtime.flowcontrol import Backoff
from jobset_gate.runtime.store import ObjectChange
from jobset_gate_demo.fake.kubelet.pods import FaultScript
from jobset_gate_demo.fake.objects import FakeObject, Json, Key

if TYPE_CHECKING:
    from jobset_gate_demo.fake.kubelet.pod_worker import PodWorker

ROUNDING = 1.0  # seconds; the script counts whole ones and gives up after the limit, not before
LONGEST_MESSAGE = 1024  # bytes
NONE = -1  # of a text that is no number


@dataclass(frozen=True, slots=True)
class BarrierIdentity:
    """The barrier's own generation and limit, from its environment when its container started.

    `attempt` and `epoch` are texts, as the downward API gives them; `limit` is in seconds, None for no limit.
    """

    uid: str
    attempt: str
    epoch: str
    limit: float | None

    @property
    def floor(self) -> int:
        """The oldest epoch whose verdict binds it; a missing epoch is 0."""
        return parse_epoch(self.epoch)

    @classmethod
    def from_env(cls, env: dict[str, str]) -> BarrierIdentity:
        limit = parse_number(env.get(names.ENV_LIMIT), NONE)
        return cls(
            uid=env.get(names.ENV_UID, ""),
            attempt=env.get(names.ENV_ATTEMPT, ""),
            epoch=env.get(names.ENV_EPOCH, ""),
            limit=None if limit == NONE else float(limit),
        )


@dataclass(frozen=True, slots=True)
class BarrierExit:
    """How the barrier ends: its exit code and the termination message, "" for none."""

    code: int
    message: str = ""


def read_verdict(own: BarrierIdentity, texts: Iterable[str]) -> BarrierExit | None:
    """The first of the texts that is a verdict for this barrier decides; None: wait on."""
    for text in texts:
        ending = _exit_for(own, text)
        if ending is not None:
            return ending
    return None


def exit_at_limit(limit: float) -> BarrierExit:
    """The end at the barrier's own limit (A7, backstop)."""
    return BarrierExit(
        names.EXIT_TIMED_OUT, f"timed out: no verdict from the jobset-gate controller within {limit:.0f}s"
    )


def _exit_for(own: BarrierIdentity, text: str) -> BarrierExit | None:
    head, _, message = text.partition("\n")
    words = head.replace("\t", " ").split(" ")  # as the shell's `read`: a carriage return is no blank
    words = [word for word in words if word]
    if len(words) < 4:
        return None
    kind, uid, attempt, epoch, *_ = words
    if not own.uid or uid != own.uid or attempt != own.attempt:
        return None
    if parse_number(epoch, NONE) < own.floor:
        return None
    if kind == "release":
        return BarrierExit(0)
    if kind == "timeout":
        shown = message.encode()[:LONGEST_MESSAGE].decode(errors="ignore")
        return BarrierExit(names.EXIT_TIMED_OUT, shown.rstrip("\n"))
    return None


# --- Mounted ConfigMaps -----------------------------------------------------------------------------------------------


def verdict_of(config_map: FakeObject) -> str:
    return str(config_map.data.get(names.KEY_VERDICT, ""))


class ConfigMapMounts:
    """The verdicts of the watched ConfigMaps; `on_sync` callbacks run when mounted volumes catch up with a change."""

    def __init__(self, sync_seconds: Callable[[], float]) -> None:
        self._sync_seconds = sync_seconds
        self._current: dict[Key | None, str] = {}
        self._mounted: defaultdict[Key | None, dict[str, Callable[[], None]]] = defaultdict(dict)

    def current(self, key: Key | None) -> str:
        """The verdict that a volume made or refreshed now shows; "" if there is no such ConfigMap."""
        return self._current.get(key, "")

    def mount(self, key: Key | None, uid: str, on_sync: Callable[[], None]) -> None:
        self._mounted[key][uid] = on_sync

    def unmount(self, key: Key | None, uid: str) -> None:
        self._mounted[key].pop(uid, None)

    def on_change(self, change: ObjectChange[str]) -> None:
        """A watch event. One timer per change, however many pods mount it."""
        if change.old != change.new:
            self._current[change.key] = change.new or ""
            asyncio.get_running_loop().call_later(self._sync_seconds(), self._synced, change.key)

    def _synced(self, key: Key) -> None:
        for on_sync in list(self._mounted[key].values()):
            on_sync()


# --- Gate streams -----------------------------------------------------------------------------------------------------

SILENCE = 40.0
"""Seconds without a byte after which the connection is closed (wget -T)."""
FILES_FOR_OTHERS = 1000


class BarrierStreams:
    """What barrier.sh does in the background: one task and one socket for each waiting barrier (A6).

    As far as the process may open files: the server's ends may be among them. A barrier beyond that limit has no
    stream, like one behind a firewall. It works in virtual time, as long as the server is in the same process.
    """

    def __init__(self, script: FaultScript) -> None:
        # Their own generator: how often a stream is opened depends on sockets, and the rest must be repeatable.
        self._script, self._rng = script, random.Random(0)
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = max(0, resource.getrlimit(resource.RLIMIT_NOFILE)[0] - FILES_FOR_OTHERS) // 2
        self._session: aiohttp.ClientSession | None = None

    def hold(
        self, own: BarrierIdentity, env: dict[str, str], on_exit: Callable[[BarrierExit], None]
    ) -> asyncio.Task[None] | None:
        """A stream for a barrier with this environment, to be cancelled at its end; None if it has none."""
        gang, uid = env.get(names.ENV_STREAM, ""), env.get(names.ENV_POD, "")
        if not (gang and own.uid and self._script.behaviour.stream) or len(self._tasks) >= self._room:
            return None
        url = f"{gang}/{own.uid}/{own.attempt}/{own.floor}/{uid}"
        task = asyncio.create_task(self._run(url, own, on_exit), name="gate stream")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._session is not None:
            await self._session.close()

    async def _run(self, url: str, own: BarrierIdentity, on_exit: Callable[[BarrierExit], None]) -> None:
        """The request, repeated until a response decides."""
        backoff = Backoff(*self._script.behaviour.stream_retry, self._rng)
        while True:
            # Whatever fails here, the barrier still reads its files.
            with suppress(aiohttp.ClientError, OSError, ValueError):
                ending = await self._request(url, own, backoff)
                if ending is not None:
                    on_exit(ending)
                    return
            await asyncio.sleep(backoff.next())

    async def _request(self, url: str, own: BarrierIdentity, backoff: Backoff) -> BarrierExit | None:
        async with self._open_session().get(url, raise_for_status=True) as response:
            backoff.reset()
            line = b"\n"
            while line == b"\n":
                line = await response.content.readline()
            if not line.endswith(b"\n"):
                return None  # torn
            if not line.startswith(b"release "):  # the message of a timeout follows
                line += (await response.content.read())[:LONGEST_MESSAGE]
            return read_verdict(own, [line.decode(errors="ignore")])

    def _open_session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, force_close=True)
            timeout = aiohttp.ClientTimeout(total=None, sock_read=SILENCE)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout)
        return self._session


# --- The container ----------------------------------------------------------------------------------------------------


class BarrierContainer:
    """It outlives the runs of its container."""

    def __init__(self, pod: PodWorker, mounts: ConfigMapMounts) -> None:
        self._pod = pod
        self._mounts = mounts
        self._texts: tuple[str, str] = ("", "")
        self._own: BarrierIdentity | None = None
        self._has_state = False
        self._released: BarrierIdentity | None = None
        """Whose release the state volume holds."""
        self._end: Callable[[BarrierExit], None] | None = None
        self._ending: asyncio.TimerHandle | None = None
        self._limit: asyncio.TimerHandle | None = None
        self._stream: asyncio.Task[None] | None = None

    def read(self) -> None:
        """Refresh the files from ConfigMap and annotation."""
        pod = self._pod.pod
        self._texts = (self._mounts.current(pod.config_map), pod.annotations.get(names.VERDICT, ""))
        self._check()

    def start(self, container: Json, end: Callable[[BarrierExit], None]) -> None:
        """The container runs; `end` is called once."""
        self.stop()
        env = self._pod.pod.env(container)
        self._own = own = BarrierIdentity.from_env(env)
        mounts = container.get("volumeMounts") or ()
        self._has_state = any(mount["mountPath"] == names.STATE_PATH for mount in mounts)
        self._end = end
        if own.limit is not None:
            limit = own.limit
            self._limit = self._pod.later(limit + ROUNDING, lambda: self._finish(exit_at_limit(limit)))
        self._stream = self._pod.host.streams.hold(own, env, self._finish)
        self._check()

    def stop(self) -> None:
        """The container has ended."""
        for one in (self._ending, self._limit, self._stream):
            if one is not None:
                one.cancel()
        self._own = self._end = self._ending = self._limit = self._stream = None

    def _check(self) -> None:
        if self._own is None or self._ending is not None:
            return
        ending = BarrierExit(0) if self._own == self._released else read_verdict(self._own, self._texts)
        if ending is not None:
            self._ending = self._pod.later(self._pod.host.script.behaviour.barrier_poll, lambda: self._finish(ending))

    def _finish(self, ending: BarrierExit) -> None:
        if end := self._end:
            if self._has_state and ending.code == 0:
                self._released = self._own
            self.stop()
            end(ending)
