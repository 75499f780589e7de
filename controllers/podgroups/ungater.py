"""Removes the scheduling gates of admitted pods: one patch for each, bounded, in the order of the admissions (G3).

The patch records the generation, so that a successor knows which pods have passed. A pod is patched once: until the
informer shows the result, it is remembered here. The same workers mark pods that were too late for Koordinator (G4).
"""

import asyncio
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, Final

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.podgroups.decode import format_opened
from jobset_gate.podgroups.model import PodGroupKey
from jobset_gate.podgroups.snapshot import MemberPod
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.flowcontrol import exponential
from jobset_gate.runtime.pod_patcher import PatchOutcome, PodPatch, PodPatcher

RESEND_SECONDS: Final = 30.0
"""Until a patch is sent again that the informer has not shown; a second one changes nothing."""

RETRY_BASE: Final = 0.5
RETRY_CAP: Final = 30.0
"""Seconds between the attempts at one pod."""


@dataclass(slots=True)
class _Desired:
    """What is to be done to one pod. `generation` None: it gets the mark."""

    pod: MemberPod
    generation: int | None
    queued: bool = True
    sent_at: float | None = None
    failures: int = 0


class Ungater:
    """`clock`: Unix time, for what is written; `on_outcome` gets the outcome of each patch."""

    def __init__(
        self, client: Client, clock: Callable[[], float], *, concurrency: int, on_outcome: Callable[[str], None]
    ) -> None:
        self._clock, self._on_outcome = clock, on_outcome
        self._patcher = PodPatcher[PodGroupKey](
            client, self._build_patch, self._on_done, concurrency=concurrency, in_order=True
        )
        self._desired: dict[PodGroupKey, dict[str, _Desired]] = {}
        """By UID, until the informer shows the result."""
        self._sending: dict[tuple[PodGroupKey, str], _Desired] = {}
        self._last: dict[PodGroupKey, int] = {}

    def set_desired(self, key: PodGroupKey, pods: Iterable[MemberPod], generation: int) -> None:
        """Exactly these pods of a group are to be ungated: those of the generation that the cache shows as gated.
        Marks are written all the same.
        """
        self._set(key, pods, generation)

    def mark_timed_out(self, key: PodGroupKey, pods: Iterable[MemberPod]) -> None:
        """Exactly these pods of a group are to be marked: those that the cache shows without the mark."""
        self._set(key, pods, None)

    def in_flight(self, key: PodGroupKey) -> frozenset[str]:
        """UIDs of the group's pods whose patch is desired, and not shown by the informer."""
        return frozenset(self._desired.get(key, ()))

    def last_generation(self, key: PodGroupKey) -> int:
        """The last generation in which this process ungated a pod of the group; 0: none."""
        return self._last.get(key, 0)

    async def stop_group(self, key: PodGroupKey) -> None:
        """Cancels all patches of a group; returns when none is in flight."""
        self._desired.pop(key, None)
        await self._patcher.drain(key)

    def forget_group(self, key: PodGroupKey) -> None:
        """Drops the state of a group that is gone or not admitted."""
        self._desired.pop(key, None)
        self._last.pop(key, None)

    async def run(self) -> None:
        """Sends patches until cancelled, or until this process no longer leads (NotLeader)."""
        await self._patcher.run()

    # --- Details ---------------------------------------------------------------------------------------------------

    def _set(self, key: PodGroupKey, pods: Iterable[MemberPod], generation: int | None) -> None:
        wanted = {pod.uid: pod for pod in pods}
        desired, marks = self._desired.setdefault(key, {}), generation is None
        for uid in [uid for uid, it in desired.items() if uid not in wanted and marks is (it.generation is None)]:
            del desired[uid]
        for uid, pod in wanted.items():
            known = desired.get(uid)
            if known is None or known.generation != generation or self._is_lost(known):
                desired[uid] = _Desired(pod, generation)
                self._patcher.enqueue(key, uid)
        if not desired:
            del self._desired[key]

    def _is_lost(self, it: _Desired) -> bool:
        return it.sent_at is not None and monotonic() - it.sent_at > RESEND_SECONDS

    def _build_patch(self, key: PodGroupKey, uid: str) -> PodPatch | None:
        it = self._desired.get(key, {}).get(uid)
        if it is None or not it.queued:
            return None
        it.queued = False
        self._sending[key, uid] = it
        return PodPatch(it.pod.namespace, it.pod.name, uid, self._body(it))

    def _on_done(self, key: PodGroupKey, uid: str, outcome: PatchOutcome) -> None:
        it = self._sending.pop((key, uid))
        self._on_outcome(outcome)
        if outcome == "error":
            wait = exponential(it.failures, RETRY_BASE, RETRY_CAP)
            it.failures += 1
            asyncio.get_running_loop().call_later(wait, self._retry, key, uid, it)
            return
        if it.generation is not None and outcome == "ok":
            self._last[key] = it.generation
        it.sent_at = monotonic()

    def _retry(self, key: PodGroupKey, uid: str, it: _Desired) -> None:
        if self._desired.get(key, {}).get(uid) is it:
            it.queued = True
            self._patcher.enqueue(key, uid)

    def _body(self, it: _Desired) -> dict[str, Any]:
        if it.generation is None:
            return {"metadata": {"annotations": {names.KOORDINATOR_TIMED_OUT: "true"}}}
        return {
            "metadata": {"annotations": {names.POD_GROUP_OPENED: format_opened(it.generation, self._clock())}},
            "spec": {"schedulingGates": [{"$patch": "delete", "name": names.POD_GROUP_GATE}]},
        }
