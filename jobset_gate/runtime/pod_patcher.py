"""Patches pods, a bounded number at a time."""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Literal, TypeVar

import msgspec
import structlog

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound, RequestFailed, is_uid_mismatch
from jobset_gate.kube.resources import PODS

K = TypeVar("K", bound=Hashable)
PatchOutcome = Literal["ok", "gone", "error"]
"""gone: there is no such pod any more, or another one of its name."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class PodPatch:
    """A strategic merge patch. Its metadata.uid is added: a patch must never land on another pod of the same name."""

    namespace: str
    name: str
    uid: str
    body: Mapping[str, Any]


class PodPatcher(Generic[K]):
    """Keys (of gangs, of groups) take turns, pod by pod; with `in_order` a key's pods all come before the next key's.

    `build(key, uid)` makes the patch when its turn has come, or None if it is no longer wanted.
    `on_done(key, uid, outcome)` hears what came of it; nothing is retried here.
    """

    def __init__(
        self,
        client: Client,
        build: Callable[[K, str], PodPatch | None],
        on_done: Callable[[K, str, PatchOutcome], None],
        *,
        concurrency: int,
        in_order: bool = False,
    ) -> None:
        self._client, self._build, self._on_done = client, build, on_done
        self._concurrency, self._in_order = concurrency, in_order
        self._queues: dict[K, deque[str]] = {}
        self._turns: deque[K] = deque()
        self._work = asyncio.Event()
        self._sending: Counter[K] = Counter()
        self._sent = asyncio.Event()

    @property
    def depth(self) -> int:
        """Patches not yet sent."""
        return sum(len(queue) for queue in self._queues.values())

    def enqueue(self, key: K, uid: str) -> None:
        """Patch this pod. The caller sees to it that a pod is queued once."""
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            self._turns.append(key)
        queue.append(uid)
        self._work.set()

    def clear(self, key: K) -> None:
        """Drops what is queued for this key."""
        self._queues.pop(key, None)

    async def drain(self, key: K) -> None:
        """The same; returns when no patch of this key is in flight either."""
        self.clear(key)
        while self._sending[key]:
            self._sent.clear()
            await self._sent.wait()

    async def run(self) -> None:
        """Sends patches until cancelled, or until this process no longer leads (NotLeader)."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._concurrency):
                tasks.create_task(self._worker())

    async def _worker(self) -> None:
        while True:
            key, uid = await self._next()
            patch = self._build(key, uid)
            if patch is None:
                continue
            self._sending[key] += 1
            try:
                outcome = await self._send(patch)
            finally:
                self._sending[key] -= 1
                self._sending += Counter()  # drops keys without any
                self._sent.set()
            self._on_done(key, uid, outcome)

    async def _next(self) -> tuple[K, str]:
        while True:
            while self._turns:
                key = self._turns.popleft()
                queue = self._queues.get(key)
                if queue:
                    uid = queue.popleft()
                    if not queue:
                        del self._queues[key]
                    elif self._in_order:
                        self._turns.appendleft(key)
                    else:
                        self._turns.append(key)
                    return key, uid
            self._work.clear()
            await self._work.wait()

    async def _send(self, it: PodPatch) -> PatchOutcome:
        its = {**it.body, "metadata": {**it.body.get("metadata", {}), "uid": it.uid}}
        try:
            await self._client.patch(PODS, it.name, it.namespace, body=its, patch=PatchType.STRATEGIC, type=msgspec.Raw)
        except NotFound:
            return "gone"
        except RequestFailed as error:
            if is_uid_mismatch(error):
                return "gone"
            _log.warning("pod not patched", namespace=it.namespace, pod=it.name, error=str(error))
            return "error"
        return "ok"
