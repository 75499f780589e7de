"""Removes the gates of opened groups' pods, one PATCH for each, a few at a time, in the order of the decisions (G3).

The patch says in which generation, so that a successor knows who has passed. A pod is patched once: until the watch
shows what came of it, it is remembered here. The same workers put Koordinator's mark on pods that were too late (G4).
"""

import asyncio
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import structlog

from jobset_gate import names
from jobset_gate.barrier import wire
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import ApiError, Conflict, Invalid, InvalidResponse, NotFound, NotLeader, Unreachable
from jobset_gate.kube.resources import PODS
from jobset_gate.podgroups.decode import opened_text
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.runtime.clock import monotonic

RESEND_SECONDS: Final = 30.0
"""A patch that no watch has shown for so long is sent once more; it changes nothing that has been done."""

FIRST_RETRY_SECONDS: Final = 0.5
MAX_RETRY_SECONDS: Final = 30.0
"""Between the attempts at one pod. What the server says of its load, the client below obeys already."""

_log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _PodPatch:
    """What is to be done to one pod. `generation` None: it gets the mark."""

    key: PodGroupKey
    pod: MemberPod
    generation: int | None
    sent_at: float | None = None
    tries: int = 0


@dataclass(slots=True)
class _Group:
    jobs: dict[str, _PodPatch] = field(default_factory=dict)
    """By UID, until the watch has shown it."""
    sending: int = 0
    still: asyncio.Event = field(default_factory=asyncio.Event)


class Ungater:
    """Gates to be removed, of all groups. `sent` is told of each outcome: "ok", "gone" or "error"."""

    def __init__(
        self,
        client: Client,
        now: Callable[[], float],
        *,
        concurrency: int,
        sent: Callable[[str], None] = lambda _: None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        """`now`: seconds since the epoch, for what is written; `clock`: one that nobody sets, for pauses."""
        self._client, self._now, self._sent, self._clock = client, now, sent, clock
        self._concurrency = concurrency
        self._groups: dict[PodGroupKey, _Group] = {}
        self._passed: dict[PodGroupKey, int] = {}
        self._line: deque[_PodPatch] = deque()
        self._work = asyncio.Event()

    def set_desired(self, key: PodGroupKey, pods: Iterable[MemberPod], generation: int) -> None:
        """These are to pass: the members of that generation which our gate still holds, as they are seen now."""
        self._add(key, pods, generation)

    def mark_timed_out(self, key: PodGroupKey, pods: Iterable[MemberPod]) -> None:
        """These are to be marked as too late; those that are marked already are not among them."""
        self._add(key, pods, None)

    def in_flight(self, key: PodGroupKey) -> frozenset[str]:
        """UIDs of the group's pods whose patch was asked for and has not been seen yet."""
        group = self._groups.get(key)
        return frozenset(group.jobs) if group is not None else frozenset()

    def last_generation(self, key: PodGroupKey) -> int:
        """The last generation in which a gate of the group was removed from here; 0: none."""
        return self._passed.get(key, 0)

    async def stop_group(self, key: PodGroupKey) -> None:
        """Sends nothing more for this group; returns when nothing is on its way either."""
        group = self._groups.get(key)
        if group is None:
            return
        del self._groups[key]
        while group.sending:
            group.still.clear()
            await group.still.wait()

    def stop_ungating(self, key: PodGroupKey) -> None:
        """No gate of this group is to go any more; marks are still put."""
        group = self._groups.get(key)
        if group is not None:
            group.jobs = {uid: job for uid, job in group.jobs.items() if job.generation is None}

    def forget_group(self, key: PodGroupKey) -> None:
        """Nothing is left of this group, or nothing was decided of it."""
        self._groups.pop(key, None)
        self._passed.pop(key, None)

    @property
    def depth(self) -> int:
        """Patches not yet sent."""
        return len(self._line)

    async def run(self) -> None:
        """Sends patches until cancelled, or until this process no longer leads (NotLeader)."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(self._concurrency):
                tasks.create_task(self._worker())

    # --- Details ---------------------------------------------------------------------------------------------------

    def _add(self, key: PodGroupKey, pods: Iterable[MemberPod], generation: int | None) -> None:
        wanted = {pod.uid: pod for pod in pods}
        group = self._groups.get(key)
        if group is None:
            if not wanted:
                return
            group = self._groups[key] = _Group()
        for uid in [uid for uid, job in group.jobs.items() if uid not in wanted and job.generation == generation]:
            del group.jobs[uid]  # the watch has shown it, or it is gone
        for uid, pod in wanted.items():
            known = group.jobs.get(uid)
            if known is None or known.generation != generation or self._unheard(known):
                job = group.jobs[uid] = _PodPatch(key, pod, generation)
                self._enqueue(job)
        if not group.jobs and not group.sending:
            del self._groups[key]

    def _unheard(self, job: _PodPatch) -> bool:
        return job.sent_at is not None and self._clock() - job.sent_at > RESEND_SECONDS

    def _enqueue(self, job: _PodPatch) -> None:
        self._line.append(job)
        self._work.set()

    async def _worker(self) -> None:
        while True:
            while not self._line:
                self._work.clear()
                await self._work.wait()
            job = self._line.popleft()
            group = self._groups.get(job.key)
            if group is None or group.jobs.get(job.pod.uid) is not job:
                continue  # the group is taken back, or the pod is gone, while it stood in line
            group.sending += 1
            try:
                await self._send(job, group)
            finally:
                group.sending -= 1
                group.still.set()

    async def _send(self, job: _PodPatch, group: _Group) -> None:
        pod, outcome = job.pod, "ok"
        try:
            await self._client.patch(
                PODS, pod.name, pod.namespace, body=self._body(job), patch=PatchType.STRATEGIC, type=msgspec.Raw
            )
        except NotFound:
            outcome = "gone"
        except NotLeader:
            raise
        except (ApiError, Unreachable, InvalidResponse) as error:
            # Another UID under that name is no conflict for an API server, but an edit of what cannot be edited.
            asked = isinstance(error, Conflict | Invalid)
            outcome = "gone" if asked and await self._is_gone(pod) else "error"
            _log.warning("gate not removed", group=job.key.path, pod=pod.name, error=str(error))
        self._sent(outcome)
        if outcome == "error":
            self._later(job, group)
            return
        if job.generation is not None and outcome == "ok":
            self._passed[job.key] = job.generation
        job.sent_at = self._clock()

    async def _is_gone(self, pod: MemberPod) -> bool:
        """Whether the API knows for sure that this pod is not there any more."""
        try:
            found = await self._client.get(PODS, pod.name, pod.namespace, type=wire.MetadataOnly)
        except NotFound:
            return True
        except (ApiError, Unreachable, InvalidResponse):
            return False
        return found.metadata.uid != pod.uid

    def _later(self, job: _PodPatch, group: _Group) -> None:
        """Once more after a while, if it is still wanted then: nobody else would."""
        pause = min(MAX_RETRY_SECONDS, FIRST_RETRY_SECONDS * 2.0**job.tries)
        job.tries += 1

        def again() -> None:
            if self._groups.get(job.key) is group and group.jobs.get(job.pod.uid) is job:
                self._enqueue(job)

        asyncio.get_running_loop().call_later(pause, again)

    def _body(self, job: _PodPatch) -> dict[str, Any]:
        """The UID is a precondition: the patch of a pod never lands on a namesake."""
        if job.generation is None:
            return {"metadata": {"uid": job.pod.uid, "annotations": {names.KOORDINATOR_TIMED_OUT: "true"}}}
        note = {names.POD_GROUP_OPENED: opened_text(job.generation, self._now())}
        gone = {"$patch": "delete", "name": names.POD_GROUP_GATE}
        return {"metadata": {"uid": job.pod.uid, "annotations": note}, "spec": {"schedulingGates": [gone]}}
