"""The annotation channel (A6.2): carries a verdict to the pods that still wait in their barrier, a few at a time.

The annotation itself holds the verdict, so it does not matter whether the kubelet has seen the ConfigMap yet. Gangs
take turns, so that a gang of ten thousand does not hold up one of ten. A pod that still waits after its patch is
patched again: only a change makes the kubelet look. A pod that was told on the gate stream is patched only if it has
not passed a good while later.
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

import structlog

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import GangKey, PodSeen, Verdict
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import (
    ApiError,
    Conflict,
    InvalidResponse,
    NotFound,
    NotLeader,
    Unreachable,
    is_uid_mismatch,
)
from jobset_gate.kube.resources import PODS
from jobset_gate.runtime.clock import monotonic

MAX_PATCHES = 32
"""Patches under way at once, over all gangs; 0 switches this channel off."""

CONFIG_MAP_GRACE = 2.0
"""Seconds that a pod gets to see the ConfigMap by itself, if its barrier began after the decision."""

DELIVERY_GRACE = 20.0
"""Seconds that a pod gets to act, and its kubelet to report it, once it was told on the gate stream."""

REPATCH_AFTER = 5.0
"""Seconds after a patch until its pod counts as a straggler; doubles with each patch."""

REPATCH_MAX = 60.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Progress:
    """What was done for one pod and one verdict."""

    text: str
    seen_at: float
    sent_at: float | None = None
    sent: int = 0
    queued: bool = False


class VerdictPatcher:
    """Patches under way and done, by pod. `sent` is told of each outcome: "ok", "gone" or "error".

    `told` says which pods, by gang and UID, heard their verdict on the gate stream, and when by the same clock: one
    that nobody sets.
    """

    def __init__(
        self,
        client: Client,
        *,
        concurrency: int = MAX_PATCHES,
        on_patched: Callable[[str], None] = lambda _: None,
        delivered: Mapping[tuple[GangKey, str], float] = MappingProxyType({}),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._client, self._clock, self._on_patched, self._delivered = client, clock, on_patched, delivered
        self._concurrency = concurrency
        self._pods: dict[GangKey, dict[str, _Progress]] = {}
        self._queues: dict[GangKey, deque[PodSeen]] = {}
        self._gang_queue: deque[GangKey] = deque()
        self._pending = asyncio.Event()

    def set_waiting_pods(self, key: GangKey, pods: Iterable[PodSeen], verdict: Verdict, *, fresh: bool) -> float | None:
        """These pods wait in their barrier and this verdict binds them: patches whom the news has not reached.

        `fresh`: the verdict was taken just now, so nobody can have heard it. Returns the seconds after which to look
        again, None if nobody waits any more.
        """
        if not self._concurrency:
            return None
        now, text = self._clock(), verdict_codec.render(verdict)
        known = self._pods.pop(key, {})
        waiting = {pod.uid: pod for pod in pods}
        if not waiting:
            self.forget_gang(key)
            return None
        kept = self._pods[key] = {}
        soonest = REPATCH_MAX
        for uid, pod in waiting.items():
            progress = known.get(uid)
            if progress is None or progress.text != text:
                sent_at = now if pod.verdict == text else None
                progress = _Progress(text, seen_at=now, sent_at=sent_at, sent=1 if sent_at is not None else 0)
            kept[uid] = progress
            due = self._due((key, uid), progress, fresh=fresh)
            if due <= now and not progress.queued:
                progress.queued = True
                self._enqueue(key, pod)
            soonest = min(soonest, max(due - now, CONFIG_MAP_GRACE))
        return soonest

    def forget_gang(self, key: GangKey) -> None:
        """The gang is gone or nobody waits: drops what is queued."""
        self._pods.pop(key, None)
        self._queues.pop(key, None)

    @property
    def depth(self) -> int:
        """Patches not yet sent."""
        return sum(len(queue) for queue in self._queues.values())

    async def run(self) -> None:
        """Sends patches until cancelled, or until this process no longer leads (NotLeader)."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._concurrency):
                tasks.create_task(self._worker())

    # --- Details ---------------------------------------------------------------------------------------------------

    def _due(self, pod: tuple[GangKey, str], progress: _Progress, *, fresh: bool) -> float:
        if progress.sent_at is None:
            told_at = self._delivered.get(pod)
            if told_at is not None:
                return told_at + DELIVERY_GRACE
            return progress.seen_at if fresh else progress.seen_at + CONFIG_MAP_GRACE
        return progress.sent_at + min(REPATCH_AFTER * 2.0 ** (progress.sent - 1), REPATCH_MAX)

    def _enqueue(self, key: GangKey, pod: PodSeen) -> None:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            self._gang_queue.append(key)
        queue.append(pod)
        self._pending.set()

    async def _next(self) -> tuple[GangKey, PodSeen]:
        while True:
            while self._gang_queue:
                key = self._gang_queue.popleft()
                queue = self._queues.get(key)
                if queue:
                    pod = queue.popleft()
                    if queue:
                        self._gang_queue.append(key)
                    else:
                        del self._queues[key]
                    return key, pod
            self._pending.clear()
            await self._pending.wait()

    async def _worker(self) -> None:
        while True:
            key, pod = await self._next()
            progress = self._pods.get(key, {}).get(pod.uid)
            if progress is None or not progress.queued:
                continue  # it passed, or the gang went, while it stood in the queue
            await self._send(pod, progress)

    async def _send(self, pod: PodSeen, progress: _Progress) -> None:
        notes = {names.VERDICT: progress.text}
        if progress.sent:
            notes[names.NUDGE] = str(progress.sent)
        # The UID keeps a verdict from landing on a namesake.
        body = {"metadata": {"uid": pod.uid, "annotations": notes}}
        outcome = "ok"
        try:
            await self._client.patch(PODS, pod.name, pod.namespace, body=body, patch=PatchType.MERGE)
        except (NotFound, Conflict):
            outcome = "gone"
        except NotLeader:
            raise
        except (ApiError, Unreachable, InvalidResponse) as error:
            # Not lost: it counts as sent, and the pod is a straggler soon. The ConfigMap travels by itself meanwhile.
            outcome = "gone" if is_uid_mismatch(error) else "error"
            if outcome == "error":
                _log.warning(
                    "pod not patched", namespace=pod.namespace, jobset=pod.gang, pod=pod.name, error=str(error)
                )
        progress.sent += 1
        progress.sent_at = self._clock()
        progress.queued = False
        self._on_patched(outcome)
