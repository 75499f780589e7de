"""Cache of gangs, joined from the informers of all their objects. It enqueues gangs that changed.

A pass costs time in proportion to the gang's pods, and a gang with k missing slots cannot become complete before k
more pods have started: until then events only cause a delayed pass. After the verdict only a pod that has not received
it needs a pass soon. Every pass counts from scratch, so these delays never decide anything.
"""

from collections.abc import Callable, Container, Iterator

from controllers.barrier.entry import GangEntry, LwsEntry, new_entry
from jobset_gate.barrier import verdict_codec
from jobset_gate.barrier.model import (
    BarrierStage,
    ConfigMapSeen,
    GangKey,
    GangSnapshot,
    JobSeen,
    PodSeen,
    Verdict,
    WorkloadSeen,
)
from jobset_gate.runtime.store import ObjectChange
from jobset_gate.sources import lws
from jobset_gate.sources.table import LWS, SOURCES

PROGRESS_DELAY = 1.0
"""Seconds to a pass after a change that cannot complete the gang."""

LATE_POD_DELAY = 0.25
"""Seconds to a pass for pods that wait though their gang is decided: one pass for all of them."""

Enqueue = Callable[[GangKey], None]
EnqueueAfter = Callable[[GangKey, float], None]


class GangCache:
    """The handlers are synchronous and cheap.

    `delivered`: gang and UID of pods that received their verdict on the gate stream. `on_change` is called after every
    change of a gang.
    """

    def __init__(
        self,
        enqueue: Enqueue,
        enqueue_after: EnqueueAfter,
        delivered: Container[tuple[GangKey, str]] = (),
        on_change: Enqueue = lambda _: None,
    ) -> None:
        self._enqueue, self._enqueue_after = enqueue, enqueue_after
        self._delivered, self._on_change = delivered, on_change
        self._gangs: dict[GangKey, GangEntry] = {}
        self._gang_by_pod: dict[str, GangKey] = {}
        """By the UIDs of pods with a token of their own."""
        self._related: dict[tuple[str, str, str], set[GangKey]] = {}
        """Gangs by source, namespace and what they share: the name that people know, where pods of several owners may
        have the same (K8), or the LeaderWorkerSet."""
        self.leader_worker_sets: dict[tuple[str, str], lws.LeaderWorkerSetSeen] = {}
        """Those with a config or a condition of ours, by namespace and name."""
        self.on_parent: Callable[[tuple[str, str]], None] = lambda _: None
        """Called with namespace and name of a LeaderWorkerSet that has changed."""

    def on_workload(self, change: ObjectChange[WorkloadSeen]) -> None:
        """Handler of workloads with a config."""
        seen = change.new or change.old
        if seen is None:
            return  # a workload without a config
        key = seen.key
        gang = self._entry(key)
        if change.old is not None and change.new is not None and change.old.uid != change.new.uid:
            gang.config_map_conflict = False
        gang.set_workload(change.new)
        if change.old != change.new:
            self._enqueue(key)
            self._changed(key, gang)

    def on_job(self, change: ObjectChange[JobSeen]) -> None:
        """Handler of gated Jobs."""
        seen = change.new or change.old
        if seen is None or change.old == change.new:
            return
        if change.old is not None and (change.old.source, change.old.gang) != (seen.source, seen.gang):
            self.on_job(ObjectChange(change.key, change.old, None))  # a Job of that name now belongs to another gang
        if seen.workload is not None or (change.old is not None and change.old.workload is not None):
            self.on_workload(_workload_change(change))
        key = GangKey(seen.namespace, seen.gang, seen.source)
        gang = self._entry(key)
        if change.new is None:
            gang.jobs.pop(seen.name, None)
        else:
            gang.jobs[seen.name] = change.new
        self._enqueue(key)
        self._changed(key, gang)

    def on_pod(self, change: ObjectChange[PodSeen]) -> None:
        """Handler of gated pods."""
        old, new = change.old, change.new
        seen = new or old
        if seen is None or old == new:
            return
        if old is not None and (old.source, old.gang) != (seen.source, seen.gang):
            self.on_pod(ObjectChange(change.key, old, None))  # its labels now name another gang
            old = None
        key = GangKey(seen.namespace, seen.gang, seen.source)
        gang = self._entry(key)
        if old is not None and (new is None or new.uid != old.uid):
            gang.remove_pod(old.uid)
            self._gang_by_pod.pop(old.uid, None)
            old = None
        if new is not None:
            gang.set_pod(new)
            new = gang.pods[new.uid]
            if new.token:
                self._gang_by_pod[new.uid] = key
        if new is not None and new.counts(gang.announced) and not (old is not None and old.counts(gang.announced)):
            self._on_pod_started(key, gang, new)
        else:
            self._enqueue_after(key, PROGRESS_DELAY)
        self._changed(key, gang)

    def on_worker_set(self, change: ObjectChange[lws.WorkerSetSeen]) -> None:
        """Handler of StatefulSets of worker pods: which leader those pods belong to."""
        old, new = change.old, change.new
        seen = new or old
        if seen is None or old == new:
            return
        key = GangKey(seen.namespace, seen.name, LWS.name)
        gang = self._entry(key)
        if isinstance(gang, LwsEntry):
            gang.change_worker_sets(old, new)
        self._enqueue(key)
        self._changed(key, gang)

    def on_leader_worker_set(self, change: ObjectChange[lws.LeaderWorkerSetSeen]) -> None:
        """Handler of LeaderWorkerSets with a config or a condition: what their groups take from them."""
        if change.new is None:
            self.leader_worker_sets.pop(change.key, None)
        else:
            self.leader_worker_sets[change.key] = change.new
        namespace, name = change.key
        for key in self.groups_of(namespace, name):
            gang = self._gangs[key]
            if isinstance(gang, LwsEntry) and gang.set_parent(lws.parent(change.new)):
                self._enqueue(key)
                self._changed(key, gang)
        self.on_parent(change.key)

    def on_config_map(self, change: ObjectChange[ConfigMapSeen]) -> None:
        """Handler of verdict ConfigMaps; the event of an own write enqueues nothing."""
        seen = change.new or change.old
        if seen is None:
            return
        key = GangKey(seen.namespace, seen.gang, seen.source)
        gang = self._entry(key)
        known = gang.config_map
        if change.new is not None and known == change.new:
            return
        if change.new is not None or (known is not None and known.uid == seen.uid):
            gang.set_config_map(change.new)
        self._enqueue(key)
        self._changed(key, gang)

    def add_announced(self, key: GangKey, pod: str, at: float) -> None:
        """The pod of this UID, cached or not, has an open request on the gate stream (A6)."""
        gang = self._entry(key)
        if pod in gang.announced:
            return
        gang.announced[pod] = at
        self._on_change(key)
        known = gang.pods.get(pod)
        if known is not None and not known.started and known.counts(gang.announced):
            self._on_pod_started(key, gang, known)

    def is_pod_waiting(self, key: GangKey, pod: str) -> bool:
        """True if the gang has a bound pod of this UID that has not passed its barrier."""
        gang = self._gangs.get(key)
        known = gang.pods.get(pod) if gang is not None else None
        if gang is None or known is None or known.workload_uid != gang.workload_uid or not gang.workload_uid:
            return False
        return known.bound and known.alive and known.stage is not BarrierStage.PASSED

    def find_pod(self, namespace: str, uid: str) -> tuple[GangKey, PodSeen] | None:
        """The pod of this UID and its gang, if the pod has a token of its own."""
        key = self._gang_by_pod.get(uid)
        if key is None or key.namespace != namespace:
            return None
        return key, self._gangs[key].pods[uid]

    def on_pod_request(self, key: GangKey, pod: str) -> None:
        """A pod that `find_pod` has found asks: if its gang is decided, a pass answers it soon."""
        gang = self._gangs[key]
        verdict = None if gang.config_map is None else gang.config_map.verdict
        if verdict is not None and verdict.generation.covers(gang.generation_of(gang.pods[pod])):
            self._enqueue_after(key, LATE_POD_DELAY)

    def remove_announced(self, key: GangKey, pod: str) -> None:
        """The pod has no open request: the count falls unless its kubelet has reported the start."""
        gang = self._gangs.get(key)
        if gang is None or gang.announced.pop(pod, None) is None:
            return
        self._enqueue_after(key, PROGRESS_DELAY)
        self._changed(key, gang)

    def on_delivery_failed(self, key: GangKey) -> None:
        """A verdict sent on the stream was not confirmed: the pod needs a patch."""
        if key in self._gangs:
            self._enqueue_after(key, PROGRESS_DELAY)

    def set_config_map(self, key: GangKey, gate: ConfigMapSeen | None) -> None:
        """The ConfigMap after a write or read of the controller."""
        gang = self._entry(key)
        gang.config_map_conflict = False
        gang.set_config_map(gate)
        self._changed(key, gang)

    def set_config_map_conflict(self, key: GangKey) -> None:
        """A ConfigMap of that name exists without our label (A10)."""
        gang = self._entry(key)
        gang.config_map_conflict = True
        self._changed(key, gang)

    def remember_verdict(self, key: GangKey, verdict: Verdict | None) -> None:
        """The first verdict of its generation, confirmed by the API."""
        gang = self._gangs.get(key)
        if gang is not None:
            gang.remembered = verdict
            self._on_change(key)

    def set_missing_count(self, key: GangKey, slots: int) -> None:
        """Starts needed before another pass can find the gang complete."""
        gang = self._gangs.get(key)
        if gang is None:
            return
        gang.missing_count = slots
        if 0 < slots <= gang.starts_since_pass:
            self._enqueue(key)  # they started during the pass

    def snapshot(self, key: GangKey) -> GangSnapshot | None:
        """The gang for a pass; None without a workload."""
        gang = self._gangs.get(key)
        seen = gang.snapshot() if gang is not None else None
        if gang is not None and seen is not None:
            gang.starts_since_pass = 0
        return seen

    def peek(self, key: GangKey) -> GangSnapshot | None:
        """The gang for readers: unlike `snapshot`, it does not reset the count of starts."""
        gang = self._gangs.get(key)
        return gang.snapshot() if gang is not None else None

    def get_workload(self, key: GangKey) -> WorkloadSeen | None:
        gang = self._gangs.get(key)
        return gang.current_workload() if gang is not None else None

    def get_verdict(self, key: GangKey) -> Verdict | None:
        """The durable verdict in the gang's ConfigMap (A6.1)."""
        gang = self._gangs.get(key)
        return gang.trusted_verdict if gang is not None else None

    def last_workload(self, key: GangKey) -> WorkloadSeen | None:
        """The gang's workload as the last reader got it: for what is done at each event."""
        gang = self._gangs.get(key)
        return gang.workload if gang is not None else None

    def keys(self) -> Iterator[GangKey]:
        """All gangs with a workload."""
        return (key for key, gang in self._gangs.items() if gang.has_workload)

    def groups_of(self, namespace: str, name: str) -> list[GangKey]:
        """The groups of this LeaderWorkerSet that have an object."""
        return list(self._related.get((LWS.name, namespace, name), ()))

    def waiting_namesakes(self, key: GangKey) -> Iterator[WorkloadSeen]:
        """Gangs of the same name under other owners, whose gates are closed (K8)."""
        alike = self._related.get(_shared(key), ()) if SOURCES[key.source].keeps_attempt else ()
        for other in alike:
            gang = self._gangs[other]
            workload = gang.current_workload()
            if other == key or workload is None or workload.finished:
                continue
            decided = gang.trusted_verdict
            if decided is None or decided.generation.attempt < workload.attempt:
                yield workload

    def __len__(self) -> int:
        return len(self._gangs)

    def _entry(self, key: GangKey) -> GangEntry:
        gang = self._gangs.get(key)
        if gang is None:
            gang = self._gangs[key] = new_entry(key)
            if SOURCES[key.source].gates_pods:
                self._related.setdefault(_shared(key), set()).add(key)
            if isinstance(gang, LwsEntry):
                gang.set_parent(lws.parent(self.leader_worker_sets.get((key.namespace, lws.parent_name(key)))))
        return gang

    def _on_pod_started(self, key: GangKey, gang: GangEntry, pod: PodSeen) -> None:
        gang.starts_since_pass += 1
        decided = gang.trusted_verdict
        if decided is not None and decided.generation.covers(gang.generation_of(pod)):
            self._enqueue_after(key, PROGRESS_DELAY if self._has_verdict(key, gang, pod) else LATE_POD_DELAY)
        elif gang.starts_since_pass >= gang.missing_count:
            self._enqueue(key)
        else:
            self._enqueue_after(key, PROGRESS_DELAY)

    def _has_verdict(self, key: GangKey, gang: GangEntry, pod: PodSeen) -> bool:
        """True if the verdict has reached this pod, or is being delivered."""
        if pod.stage is not BarrierStage.RUNNING or (key, pod.uid) in self._delivered:
            return True
        carried = verdict_codec.parse(pod.verdict)
        return carried is not None and carried.generation.covers(gang.generation_of(pod))

    def _changed(self, key: GangKey, gang: GangEntry) -> None:
        self._on_change(key)
        if gang.is_empty:
            self._gangs.pop(key, None)
            alike = self._related.get(_shared(key), set())
            alike.discard(key)
            if not alike:
                self._related.pop(_shared(key), None)


def _shared(key: GangKey) -> tuple[str, str, str]:
    name = lws.parent_name(key) if key.source == LWS.name else SOURCES[key.source].shown_name(key.name)
    return key.source, key.namespace, name


def _workload_change(change: ObjectChange[JobSeen]) -> ObjectChange[WorkloadSeen]:
    """The change of a Job that is a workload itself."""
    old, new = change.old, change.new
    return ObjectChange(change.key, None if old is None else old.workload, None if new is None else new.workload)
