"""The annotation channel (A6.2): patches the verdict onto pods that still wait in their barrier.

Gangs take turns, so that a gang of ten thousand does not delay one of ten. A pod that still waits after its patch is
patched again: only a change makes the kubelet refresh the volume.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from jobset_gate import names
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import GangKey, PodSeen, Verdict
from jobset_gate.kube.client import Client
from jobset_gate.runtime.clock import monotonic
from jobset_gate.runtime.pod_patcher import PatchOutcome, PodPatch, PodPatcher
from jobset_gate.sources.table import SOURCES

MAX_PATCHES = 32
"""Patches in flight, over all gangs; 0 disables this channel."""

CONFIG_MAP_GRACE = 2.0
"""Seconds in which a pod whose barrier started after the verdict reads it in the ConfigMap volume, or asks the gate
stream."""

DELIVERY_GRACE = 20.0
"""Seconds in which a pod that received its verdict on the gate stream passes, and its kubelet reports it."""

REPATCH_AFTER = 5.0
"""Seconds from a patch to the next one of a pod that still waits; doubles with each patch."""

REPATCH_MAX = 60.0


@dataclass(slots=True)
class _Progress:
    """Patches of one pod with one verdict."""

    pod: PodSeen
    verdict: Verdict
    text: str
    """Of the gang's verdict; a pod that is gated alone gets its own (K3)."""
    seen_at: float
    patched_at: float | None = None
    patches: int = 0
    queued: bool = False


class VerdictPatcher:
    """`delivered`: gang and pod UID to the time at which the gate stream sent the verdict."""

    def __init__(
        self,
        client: Client,
        *,
        concurrency: int = MAX_PATCHES,
        on_patched: Callable[[str, str], None] = lambda _, __: None,
        delivered: Mapping[tuple[GangKey, str], float] = MappingProxyType({}),
    ) -> None:
        self._on_patched, self._delivered = on_patched, delivered
        self._concurrency = concurrency
        self._pods: dict[GangKey, dict[str, _Progress]] = {}
        self._patcher: PodPatcher[GangKey] = PodPatcher(client, self._build, self._on_done, concurrency=concurrency)
        self.run = self._patcher.run

    def set_waiting_pods(self, key: GangKey, pods: Iterable[PodSeen], verdict: Verdict, *, fresh: bool) -> float | None:
        """The pods that wait in their barrier and are bound by this verdict: patches those that need it.

        `fresh`: the verdict was written just now. Returns seconds to the next pass, None if no pod waits.
        """
        if not self._concurrency:
            return None
        now, text = monotonic(), verdict_codec.render(verdict)
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
                patched = pod.verdict == text  # by this controller before a crash, or by another replica
                progress = _Progress(pod, verdict, text, now, now if patched else None, int(patched))
            kept[uid] = progress
            due = self._due((key, uid), progress, fresh=fresh)
            if due <= now and not progress.queued:
                progress.queued = True
                self._patcher.enqueue(key, uid)
            soonest = min(soonest, max(due - now, CONFIG_MAP_GRACE))
        return soonest

    def forget_gang(self, key: GangKey) -> None:
        """The gang is gone or no pod waits: drops queued patches."""
        self._pods.pop(key, None)
        self._patcher.clear(key)

    @property
    def depth(self) -> int:
        """Queued patches."""
        return self._patcher.depth

    def _due(self, pod: tuple[GangKey, str], progress: _Progress, *, fresh: bool) -> float:
        if progress.patched_at is None:
            delivered_at = self._delivered.get(pod)
            if delivered_at is not None:
                return delivered_at + DELIVERY_GRACE
            return progress.seen_at if fresh else progress.seen_at + CONFIG_MAP_GRACE
        return progress.patched_at + min(REPATCH_AFTER * 2.0 ** (progress.patches - 1), REPATCH_MAX)

    def _build(self, key: GangKey, uid: str) -> PodPatch | None:
        progress = self._pods.get(key, {}).get(uid)
        if progress is None or not progress.queued:
            return None  # the pod passed, or the gang is gone
        pod, text = progress.pod, progress.text
        if SOURCES[key.source].gates_pods:
            text = verdict_codec.render(verdict_codec.addressed(progress.verdict, uid))
        annotations = {names.VERDICT: text}
        if progress.patches:
            annotations[names.NUDGE] = str(progress.patches)
        return PodPatch(pod.namespace, pod.name, pod.uid, {"metadata": {"annotations": annotations}})

    def _on_done(self, key: GangKey, uid: str, outcome: PatchOutcome) -> None:
        """A failed patch counts as sent: the pod is patched again later, and the ConfigMap reaches it meanwhile."""
        progress = self._pods.get(key, {}).get(uid)
        if progress is not None:
            progress.patches += 1
            progress.patched_at = monotonic()
            progress.queued = False
        self._on_patched(key.source, outcome)
