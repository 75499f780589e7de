"""What the informers know, kept by gang: changes come in, keys of gangs to look at go out.

A pass over a gang costs time in proportion to its pods, so not every pod event may cause one: a gang that lacks k
slots cannot become complete before k more pods have started. Until then passes are made at leisure, for the progress
that people see; the k-th start wakes the gang at once, be it reported by a kubelet or announced by the pod itself. Once
the gang is decided, only a pod that has not heard of it is in any hurry. The hint never decides anything: every pass
counts anew.
"""

from collections.abc import Callable, Container, Iterator

from controllers.barrier.gang_entry import GangEntry
from controllers.barrier.gang_key import GangKey
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import (
    BarrierStage,
    ConfigMapSeen,
    GangSnapshot,
    Generation,
    JobSeen,
    JobSetSeen,
    PodSeen,
    Verdict,
)
from jobset_gate.runtime.store import ObjectChange

PROGRESS_DELAY = 1.0
"""Seconds within which a change that cannot complete a gang is looked at."""

LATE_POD_DELAY = 0.25
"""Seconds within which a pod is looked at that waits for a decision taken already: with all the others that do."""

Enqueue = Callable[[GangKey], None]
EnqueueAfter = Callable[[GangKey, float], None]


class GangCache:
    """Gangs, joined from four informers' changes. Its handlers are synchronous and cheap."""

    def __init__(
        self,
        enqueue: Enqueue,
        enqueue_after: EnqueueAfter,
        delivered: Container[tuple[GangKey, str]] = (),
        on_change: Enqueue = lambda _: None,
    ) -> None:
        """`told`: gang and UID of the pods that were told their verdict on the gate stream.

        `touched` hears of every change, for whoever shows gangs and decides nothing.
        """
        self._enqueue, self._enqueue_after, self._delivered, self._on_change = (
            enqueue,
            enqueue_after,
            delivered,
            on_change,
        )
        self._gangs: dict[GangKey, GangEntry] = {}

    # --- Changes ---------------------------------------------------------------------------------------------------

    def on_jobset(self, change: ObjectChange[JobSetSeen]) -> None:
        """A JobSet with a config came, changed or went."""
        key = GangKey(*change.key)
        gang = self._entry(key)
        if change.old is not None and change.new is not None and change.old.uid != change.new.uid:
            gang.config_map_conflict = False
        gang.set_jobset(change.new)
        if change.old != change.new:
            self._on_change(key)
            self._enqueue(key)
        self._drop_if_empty(key, gang)

    def on_job(self, change: ObjectChange[JobSeen]) -> None:
        """A gated Job came, changed in a way that matters, or went."""
        seen = change.new or change.old
        if seen is None or change.old == change.new:
            return
        if change.old is not None and change.old.gang != seen.gang:
            self.on_job(ObjectChange(change.key, change.old, None))  # the name is one of another gang by now
        key = GangKey(seen.namespace, seen.gang)
        gang = self._entry(key)
        if change.new is None:
            gang.jobs.pop(seen.name, None)
        else:
            gang.jobs[seen.name] = change.new
        self._on_change(key)
        self._enqueue(key)
        self._drop_if_empty(key, gang)

    def on_pod(self, change: ObjectChange[PodSeen]) -> None:
        """A gated pod came, changed or went."""
        old, new = change.old, change.new
        seen = new or old
        if seen is None or old == new:
            return
        if old is not None and old.gang != seen.gang:
            self.on_pod(ObjectChange(change.key, old, None))  # it counts there no more, whoever has moved it
            old = None
        key = GangKey(seen.namespace, seen.gang)
        gang = self._entry(key)
        self._on_change(key)
        if old is not None and (new is None or new.uid != old.uid):
            gang.pods.pop(old.uid, None)
            old = None
        if new is not None:
            gang.pods[new.uid] = new
            if new.counts(gang.announced) and not (old is not None and old.counts(gang.announced)):
                self._on_pod_started(key, gang, new)
                return
        self._enqueue_after(key, PROGRESS_DELAY)
        self._drop_if_empty(key, gang)

    def on_config_map(self, change: ObjectChange[ConfigMapSeen]) -> None:
        """A ConfigMap of ours came, changed or went; the echo of what we wrote ourselves wakes nobody."""
        seen = change.new or change.old
        if seen is None:
            return
        key = GangKey(seen.namespace, seen.gang)
        gang = self._entry(key)
        if change.new is None:
            gone = gang.config_map is not None and gang.config_map.uid == seen.uid
            gang.set_config_map(None if gone else gang.config_map)
        elif gang.config_map == change.new:
            return
        else:
            gang.set_config_map(change.new)
        self._on_change(key)
        self._enqueue(key)
        self._drop_if_empty(key, gang)

    # --- What pods say themselves, on the gate stream (A6) -----------------------------------------------------------

    def add_announced(self, key: GangKey, pod: str, at: float) -> None:
        """The pod of this UID holds a request open, since then if it had none; it may not be known yet."""
        gang = self._entry(key)
        if pod in gang.announced:
            return
        gang.announced[pod] = at
        self._on_change(key)
        known = gang.pods.get(pod)
        if known is not None and not known.started and known.counts(gang.announced):
            self._on_pod_started(key, gang, known)

    def is_pod_waiting(self, key: GangKey, pod: str) -> bool:
        """Whether the gang has a pod of this UID that is on a node and has not passed its barrier."""
        gang = self._gangs.get(key)
        known = gang.pods.get(pod) if gang is not None else None
        if gang is None or gang.jobset is None or known is None or known.jobset_uid != gang.jobset.uid:
            return False
        return known.bound and known.alive and known.stage is not BarrierStage.PASSED

    def remove_announced(self, key: GangKey, pod: str) -> None:
        """It does so no more: the count falls, unless its kubelet has reported the start meanwhile."""
        gang = self._gangs.get(key)
        if gang is None or gang.announced.pop(pod, None) is None:
            return
        self._on_change(key)
        self._enqueue_after(key, PROGRESS_DELAY)
        self._drop_if_empty(key, gang)

    def on_delivery_failed(self, key: GangKey) -> None:
        """A pod was told on the stream, and nothing shows that it has heard: it is to be reached otherwise."""
        if key in self._gangs:
            self._enqueue_after(key, PROGRESS_DELAY)

    # --- What the reconciler itself found out ------------------------------------------------------------------------

    def set_config_map(self, key: GangKey, gate: ConfigMapSeen | None) -> None:
        """The ConfigMap as it is known after a write or a read of ours; what is news, the informer's store knows."""
        gang = self._entry(key)
        gang.config_map_conflict = False
        gang.set_config_map(gate)
        self._on_change(key)
        self._drop_if_empty(key, gang)  # its JobSet may have gone meanwhile

    def set_config_map_conflict(self, key: GangKey) -> None:
        """A ConfigMap of that name is not ours (A10)."""
        gang = self._entry(key)
        gang.config_map_conflict = True
        self._on_change(key)
        self._drop_if_empty(key, gang)

    def remember_verdict(self, key: GangKey, verdict: Verdict | None) -> None:
        """This verdict was the first of its generation, as the API has confirmed."""
        gang = self._gangs.get(key)
        if gang is not None:
            gang.remembered = verdict
            self._on_change(key)

    def set_missing_count(self, key: GangKey, slots: int) -> None:
        """So many starts are needed before another pass can find the gang complete."""
        gang = self._gangs.get(key)
        if gang is None:
            return
        gang.missing_count = slots
        if 0 < slots <= gang.starts_since_pass:
            self._enqueue(key)  # they came while the pass was under way

    # --- Looking -----------------------------------------------------------------------------------------------------

    def snapshot(self, key: GangKey) -> GangSnapshot | None:
        """Everything known of a gang; None if its JobSet is gone or asks for no gang."""
        gang = self._gangs.get(key)
        if gang is None or gang.jobset is None:
            return None
        gang.starts_since_pass = 0
        return gang.snapshot()

    def peek(self, key: GangKey) -> GangSnapshot | None:
        """The same for whoever only looks: no pass is made of it, so every start since the last one still counts."""
        gang = self._gangs.get(key)
        return gang.snapshot() if gang is not None else None

    def get_jobset(self, key: GangKey) -> JobSetSeen | None:
        """The gang's JobSet, if it is known."""
        gang = self._gangs.get(key)
        return gang.jobset if gang is not None else None

    def get_verdict(self, key: GangKey) -> Verdict | None:
        """The verdict that the gang's own ConfigMap holds, as far as known (A6.1: it is durable)."""
        gang = self._gangs.get(key)
        return gang.trusted_verdict if gang is not None else None

    def keys(self) -> Iterator[GangKey]:
        """All gangs whose JobSet is known."""
        return (key for key, gang in self._gangs.items() if gang.jobset is not None)

    def __len__(self) -> int:
        return len(self._gangs)

    def _entry(self, key: GangKey) -> GangEntry:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = GangEntry()
        return gang

    def _on_pod_started(self, key: GangKey, gang: GangEntry, pod: PodSeen) -> None:
        gang.starts_since_pass += 1
        decided = gang.trusted_verdict
        if decided is not None and decided.generation.covers(_generation(pod)):
            self._enqueue_after(key, PROGRESS_DELAY if self._has_verdict(key, pod) else LATE_POD_DELAY)
        elif gang.starts_since_pass >= gang.missing_count:
            self._enqueue(key)
        else:
            self._enqueue_after(key, PROGRESS_DELAY)

    def _has_verdict(self, key: GangKey, pod: PodSeen) -> bool:
        """Whether the verdict that binds it has reached this pod, or is on its way."""
        if pod.stage is not BarrierStage.RUNNING or (key, pod.uid) in self._delivered:
            return True
        carried = verdict_codec.parse(pod.verdict)
        return carried is not None and carried.generation.covers(_generation(pod))

    def _drop_if_empty(self, key: GangKey, gang: GangEntry) -> None:
        if gang.is_empty:
            self._gangs.pop(key, None)


def _generation(pod: PodSeen) -> Generation:
    return Generation(pod.jobset_uid, pod.attempt, pod.epoch)
