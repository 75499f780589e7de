"""One gang in the cache: the objects that the informers have shown of it, and its snapshot."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from jobset_gate.barrier.integrity import has_started, was_edited
from jobset_gate.barrier.member import Membership
from jobset_gate.barrier.model import (
    ConfigMapSeen,
    GangKey,
    GangSnapshot,
    Generation,
    JobSeen,
    PodSeen,
    Verdict,
    WorkloadSeen,
)
from jobset_gate.sources import lws, startgroup
from jobset_gate.sources.members import Gathered
from jobset_gate.sources.table import SOURCES


@dataclass(slots=True)
class GangEntry:
    """One gang whose workload is an object. Workload, pods and `config_map` are changed by their setters only."""

    workload: WorkloadSeen | None = None
    jobs: dict[str, JobSeen] = field(default_factory=dict)
    pods: dict[str, PodSeen] = field(default_factory=dict)
    """By UID, as they were decoded; those of a LeaderWorkerSet with the UID of their leader."""
    announced: dict[str, float] = field(default_factory=dict)
    """UIDs of pods with an open request on the gate stream, cached or not, and the time of the first."""
    config_map: ConfigMapSeen | None = None
    membership: Membership | None = None
    remembered: Verdict | None = None
    config_map_conflict: bool = False
    missing_count: int = 0
    """Missing slots at the last pass."""
    starts_since_pass: int = 0

    @property
    def is_empty(self) -> bool:
        """True if no object of the gang is left."""
        return not (self.workload or self.jobs or self.pods or self.config_map or self.announced)

    @property
    def has_workload(self) -> bool:
        """Whether there is one, at no cost."""
        return self.workload is not None

    @property
    def workload_uid(self) -> str:
        """The workload's UID, "" without a workload."""
        return "" if self.workload is None else self.workload.uid

    def set_workload(self, workload: WorkloadSeen | None) -> None:
        self.workload = workload
        self._update_remembered()

    def set_config_map(self, gate: ConfigMapSeen | None) -> None:
        self.config_map = gate
        self._update_remembered()

    def set_pod(self, pod: PodSeen) -> None:
        self.pods[pod.uid] = pod

    def remove_pod(self, uid: str) -> None:
        self.pods.pop(uid, None)

    def current_workload(self) -> WorkloadSeen | None:
        """The workload with all changes."""
        return self.workload

    def generation_of(self, pod: PodSeen) -> Generation:
        """The generation of a pod of this gang."""
        return Generation(pod.workload_uid, pod.attempt, pod.epoch)

    @property
    def trusted_verdict(self) -> Verdict | None:
        """The verdict in the gang's ConfigMap, unless it may be forged."""
        kept = self._stored_verdict
        return kept if kept is not None and kept == self.remembered else None

    def snapshot(self) -> GangSnapshot | None:
        """None without a workload."""
        return self._snapshot(self.pods.values())

    def _snapshot(self, pods: Iterable[PodSeen]) -> GangSnapshot | None:
        if self.workload is None:
            return None
        return GangSnapshot(
            workload=self.workload,
            jobs=tuple(self.jobs.values()),
            pods=tuple(pods),
            config_map=self.config_map,
            remembered=self.remembered,
            config_map_conflict=self.config_map_conflict,
            announced=dict(self.announced),
            membership=self.membership,
        )

    @property
    def _stored_verdict(self) -> Verdict | None:
        """The verdict in the ConfigMap of this workload."""
        gate = self.config_map
        return gate.verdict if gate is not None and gate.workload_uid == self.workload_uid != "" else None

    def _update_remembered(self) -> None:
        """Remembers the ConfigMap's verdict if it is the first of a generation that has started."""
        kept, known = self._stored_verdict, self.remembered
        if kept is None or self.workload is None or was_edited(kept, self.workload, known) or _older(kept, known):
            return
        if has_started(kept.generation, self.workload, self.pods.values()):
            self.remembered = kept


@dataclass
class GatheredEntry(GangEntry):
    """One gang whose workload is made from its pods and its ConfigMap (K5).

    That takes time in proportion to the pods, so an event of a pod only marks it stale, and the next reader gathers.
    """

    key: GangKey = field(kw_only=True)
    _gathered: tuple[PodSeen, ...] = ()
    """The pods with their generation."""
    _is_stale: bool = False

    @property
    def is_empty(self) -> bool:
        """True if no object of the gang is left."""
        return not (self.pods or self.config_map or self.announced)

    def set_pod(self, pod: PodSeen) -> None:
        self.pods[pod.uid] = pod
        self._is_stale = True

    def remove_pod(self, uid: str) -> None:
        self.pods.pop(uid, None)
        self._is_stale = True

    def current_workload(self) -> WorkloadSeen | None:
        """The workload with all changes: gathers after one."""
        if self._is_stale:
            self._update()
        return self.workload

    def snapshot(self) -> GangSnapshot | None:
        """None without pods that make a workload."""
        self.current_workload()
        return self._snapshot(self._gathered)

    def _update(self) -> None:
        self._is_stale = False
        found = self._gather()
        if found is None:
            self.workload, self.jobs, self._gathered = None, {}, ()
            return
        self.workload, self._gathered = found.workload, found.pods
        self.jobs = {found.job.name: found.job}
        self._update_remembered()

    def _gather(self) -> Gathered | None:
        """The gang that the pods are."""
        raise NotImplementedError


@dataclass
class StartGroupEntry(GatheredEntry):
    """One start group: whatever pods there are of one name under one owner."""

    _config_map_uid: str = ""
    """Of the ConfigMap that was seen last."""

    @property
    def has_workload(self) -> bool:
        """Whether there is one, at no cost: whatever pods there are make one."""
        return bool(self.pods)

    @property
    def workload_uid(self) -> str:
        """The UID of the pods' owner, with or without pods."""
        return startgroup.group_and_owner(self.key.name)[1]

    def set_config_map(self, gate: ConfigMapSeen | None) -> None:
        """A ConfigMap that another replica made or filled again counts alone: attempts may have begun at 0 again."""
        if gate is None:
            self.current_workload()  # remembers what the deleted one said
        self.config_map = gate
        if gate is not None and (gate.uid != self._config_map_uid or startgroup.is_other(self.membership, gate)):
            self.membership, self.remembered, self._config_map_uid = None, None, gate.uid
        self.membership = startgroup.latest(self.membership, None if gate is None else gate.membership)
        self._update()  # there are few such events, and the verdict must be known to the next pod

    def generation_of(self, pod: PodSeen) -> Generation:
        """The generation of a pod, which has no mark of it: the one that was gathered last."""
        return Generation(pod.workload_uid, 0 if self.workload is None else self.workload.attempt, pod.epoch)

    def _gather(self) -> Gathered | None:
        return startgroup.gather(self.key, self.pods.values(), self.membership, self.config_map)


@dataclass
class LwsEntry(GatheredEntry):
    """One group of a LeaderWorkerSet: a leader pod, and the pods of the StatefulSets that it controls."""

    parent: lws.Parent = lws.NO_PARENT
    _worker_sets: dict[str, str] = field(default_factory=dict)
    """UIDs of leader pods by those of their StatefulSets: that of an earlier leader may still be there."""
    _leader_uid: str = ""

    @property
    def is_empty(self) -> bool:
        """True if no object of the gang is left."""
        return super().is_empty and not self._worker_sets

    @property
    def has_workload(self) -> bool:
        """Whether there is one, at no cost: a leader pod makes one."""
        return self._leader_uid != ""

    @property
    def workload_uid(self) -> str:
        """The UID of the present leader pod."""
        return self._leader_uid

    def set_config_map(self, gate: ConfigMapSeen | None) -> None:
        self.config_map = gate
        self._update()

    def set_pod(self, pod: PodSeen) -> None:
        super().set_pod(lws.of_leader(pod, lws.leader_uid(pod, self._worker_sets)))
        if not pod.index:
            self._leader_uid = pod.uid
        elif pod.uid == self._leader_uid:
            self._leader_uid = ""

    def remove_pod(self, uid: str) -> None:
        super().remove_pod(uid)
        if uid == self._leader_uid:
            self._leader_uid = ""

    def change_worker_sets(self, gone: lws.WorkerSetSeen | None, new: lws.WorkerSetSeen | None) -> None:
        if gone is not None:
            self._worker_sets.pop(gone.uid, None)
        if new is not None:
            self._worker_sets[new.uid] = new.leader_uid
        for pod in [*self.pods.values()]:
            self.set_pod(pod)
        self._is_stale = True

    def set_parent(self, parent: lws.Parent) -> bool:
        """True if that changes the gang."""
        if parent == self.parent:
            return False
        self.parent, self._is_stale = parent, True
        return self.has_workload

    def _gather(self) -> Gathered | None:
        return lws.gather(self.key, self.pods.values(), self._worker_sets, self.parent, self.config_map)


def new_entry(key: GangKey) -> GangEntry:
    """An entry for this gang, as its source needs one."""
    source = SOURCES[key.source]
    if not source.gates_pods:
        return GangEntry()
    return StartGroupEntry(key=key) if source.keeps_attempt else LwsEntry(key=key)


def _older(one: Verdict, other: Verdict | None) -> bool:
    if other is None or other.generation.uid != one.generation.uid:
        return False
    return (one.generation.attempt, one.generation.epoch) < (other.generation.attempt, other.generation.epoch)
