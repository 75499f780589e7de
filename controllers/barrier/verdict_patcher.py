"""The annotation channel (A6.2): patches a verdict onto the pods that still wait in their barrier.

The annotation itself holds the verdict, so it does not matter whether the kubelet has seen the ConfigMap yet. Gangs
take turns, so that a gang of ten thousand does not hold up one of ten. A pod that still waits after its patch is
patched again: only a change makes the kubelet look. A pod that got its verdict on the gate stream is patched only if it
has not passed a good while later.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import GangKey, PodSeen, Verdict
from jobset_gate.kube.client import Client
from jobset_gate.runtime.backoff import exponential
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.pod_patcher import PatchOutcome, PodPatch, PodPatcher

MAX_PATCHES = 32
"""Patches in flight, over all gangs; 0 switches this channel off."""

CONFIG_MAP_GRACE = 2.0
"""Seconds that a pod gets to see the ConfigMap by itself, if its barrier began after the decision."""

DELIVERY_GRACE = 20.0
"""Seconds that a pod gets to act, and its kubelet to report it, after it got its verdict on the gate stream."""

REPATCH_AFTER = 5.0
"""Seconds after a patch until its pod is patched again; doubles with each patch."""

REPATCH_MAX = 60.0


@dataclass(slots=True)
class _Progress:
    """What was done for one pod and one verdict."""

    pod: PodSeen
    text: str
    seen_at: float
    sent_at: float | None = None
    sent: int = 0
    queued: bool = False


class VerdictPatcher:
    """`on_patched` gets each outcome: "ok", "gone" or "error".

    `delivered` says which pods, by gang and UID, got their verdict on the gate stream, and when, by `monotonic`.
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
        self._clock, self._on_patched, self._delivered = clock, on_patched, delivered
        self._concurrency = concurrency
        self._pods: dict[GangKey, dict[str, _Progress]] = {}
        self._patcher: PodPatcher[GangKey] = PodPatcher(client, self._build, self._on_done, concurrency=concurrency)

    def set_waiting_pods(self, key: GangKey, pods: Iterable[PodSeen], verdict: Verdict, *, fresh: bool) -> float | None:
        """These pods wait in their barrier and this verdict binds them: patches those that have not heard of it.

        `fresh`: the verdict was taken just now, so no pod can have heard of it. Returns the seconds after which to call
        again, None if no pod waits.
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
                progress = _Progress(pod, text, seen_at=now, sent_at=sent_at, sent=1 if sent_at is not None else 0)
            kept[uid] = progress
            due = self._due((key, uid), progress, fresh=fresh)
            if due <= now and not progress.queued:
                progress.queued = True
                self._patcher.enqueue(key, uid)
            soonest = min(soonest, max(due - now, CONFIG_MAP_GRACE))
        return soonest

    def forget_gang(self, key: GangKey) -> None:
        """The gang is gone or no pod waits: drops what is queued."""
        self._pods.pop(key, None)
        self._patcher.clear(key)

    @property
    def depth(self) -> int:
        """Patches not yet sent."""
        return self._patcher.depth

    async def run(self) -> None:
        """Sends patches until cancelled, or until this process no longer leads (NotLeader)."""
        await self._patcher.run()

    # --- Details ---------------------------------------------------------------------------------------------------

    def _due(self, pod: tuple[GangKey, str], progress: _Progress, *, fresh: bool) -> float:
        if progress.sent_at is None:
            delivered_at = self._delivered.get(pod)
            if delivered_at is not None:
                return delivered_at + DELIVERY_GRACE
            return progress.seen_at if fresh else progress.seen_at + CONFIG_MAP_GRACE
        return progress.sent_at + exponential(progress.sent - 1, REPATCH_AFTER, REPATCH_MAX)

    def _queued(self, key: GangKey, uid: str) -> _Progress | None:
        """None if the pod passed, or the gang went, while the pod was queued."""
        progress = self._pods.get(key, {}).get(uid)
        return progress if progress is not None and progress.queued else None

    def _build(self, key: GangKey, uid: str) -> PodPatch | None:
        progress = self._queued(key, uid)
        if progress is None:
            return None
        annotations = {names.VERDICT: progress.text}
        if progress.sent:
            annotations[names.NUDGE] = str(progress.sent)
        pod = progress.pod
        return PodPatch(pod.namespace, pod.name, pod.uid, {"metadata": {"annotations": annotations}})

    def _on_done(self, key: GangKey, uid: str, outcome: PatchOutcome) -> None:
        # A failed patch counts as sent: the pod is patched again soon, and the ConfigMap arrives meanwhile.
        progress = self._queued(key, uid)
        if progress is not None:
            progress.sent += 1
            progress.sent_at = self._clock()
            progress.queued = False
        self._on_patched(outcome)
