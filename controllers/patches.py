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

from controllers.keys import Key
from controllers.refusals import is_of_another_uid
from controllers.ticks import ticks
from jobset_gate import names, verdicts
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, BadAnswer, Conflict, NotFound, NotLeader, Unreachable
from jobset_gate.kube.resources import PODS
from jobset_gate.model import PodSeen, Verdict

CONCURRENCY = 32
"""Patches under way at once, over all gangs; 0 switches this channel off."""

PATIENCE = 2.0
"""Seconds that a pod gets to see the ConfigMap by itself, if its barrier began after the decision."""

TOLD_PATIENCE = 20.0
"""Seconds that a pod gets to act, and its kubelet to report it, once it was told on the gate stream."""

STRAGGLES_AFTER = 5.0
"""Seconds after a patch until its pod counts as a straggler; doubles with each patch."""

STRAGGLES_AT_MOST = 60.0

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Progress:
    """What was done for one pod and one verdict."""

    text: str
    seen_at: float
    sent_at: float | None = None
    sent: int = 0
    queued: bool = False


class Patches:
    """Patches under way and done, by pod. `sent` is told of each outcome: "ok", "gone" or "error".

    `told` says which pods, by gang and UID, heard their verdict on the gate stream, and when by the same clock: one
    that nobody sets.
    """

    def __init__(
        self,
        client: Client,
        *,
        concurrency: int = CONCURRENCY,
        sent: Callable[[str], None] = lambda _: None,
        told: Mapping[tuple[Key, str], float] = MappingProxyType({}),
        clock: Callable[[], float] = ticks,
    ) -> None:
        self._client, self._clock, self._sent, self._told = client, clock, sent, told
        self._concurrency = concurrency
        self._pods: dict[Key, dict[str, _Progress]] = {}
        self._queues: dict[Key, deque[PodSeen]] = {}
        self._turns: deque[Key] = deque()
        self._work = asyncio.Event()

    def want(self, key: Key, pods: Iterable[PodSeen], verdict: Verdict, *, fresh: bool) -> float | None:
        """These pods wait in their barrier and this verdict binds them: patches whom the news has not reached.

        `fresh`: the verdict was taken just now, so nobody can have heard it. Returns the seconds after which to look
        again, None if nobody waits any more.
        """
        if not self._concurrency:
            return None
        now, text = self._clock(), verdicts.render(verdict)
        known = self._pods.pop(key, {})
        waiting = {pod.uid: pod for pod in pods}
        if not waiting:
            self.forget(key)
            return None
        kept = self._pods[key] = {}
        soonest = STRAGGLES_AT_MOST
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
            soonest = min(soonest, max(due - now, PATIENCE))
        return soonest

    def forget(self, key: Key) -> None:
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

    def _due(self, pod: tuple[Key, str], progress: _Progress, *, fresh: bool) -> float:
        if progress.sent_at is None:
            told_at = self._told.get(pod)
            if told_at is not None:
                return told_at + TOLD_PATIENCE
            return progress.seen_at if fresh else progress.seen_at + PATIENCE
        return progress.sent_at + min(STRAGGLES_AFTER * 2.0 ** (progress.sent - 1), STRAGGLES_AT_MOST)

    def _enqueue(self, key: Key, pod: PodSeen) -> None:
        queue = self._queues.get(key)
        if queue is None:
            queue = self._queues[key] = deque()
            self._turns.append(key)
        queue.append(pod)
        self._work.set()

    async def _next(self) -> tuple[Key, PodSeen]:
        while True:
            while self._turns:
                key = self._turns.popleft()
                queue = self._queues.get(key)
                if queue:
                    pod = queue.popleft()
                    if queue:
                        self._turns.append(key)
                    else:
                        del self._queues[key]
                    return key, pod
            self._work.clear()
            await self._work.wait()

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
        except (ApiError, Unreachable, BadAnswer) as error:
            # Not lost: it counts as sent, and the pod is a straggler soon. The ConfigMap travels by itself meanwhile.
            outcome = "gone" if is_of_another_uid(error) else "error"
            if outcome == "error":
                _log.warning(
                    "pod not patched", namespace=pod.namespace, jobset=pod.gang, pod=pod.name, error=str(error)
                )
        progress.sent += 1
        progress.sent_at = self._clock()
        progress.queued = False
        self._sent(outcome)
