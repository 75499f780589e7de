"""Immutable values of the start barrier's rules: what is seen of a gang, up to its snapshot.

Times are seconds since the epoch. `msgspec.Struct`, not dataclasses: a controller creates ten thousand per second.
"""

from collections.abc import Container, Mapping
from datetime import datetime
from enum import IntEnum, StrEnum
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from jobset_gate.barrier.member import MemberSeen, Membership, ObjectSeen
from jobset_gate.barrier.source import Source


class Value(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Base of immutable values, compared by value."""


class GangKey(NamedTuple):
    """A gang by its source and its workload's namespace and name: what work queues hold."""

    namespace: str
    name: str
    source: str = "jobset"

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}"

    def log_fields(self) -> dict[str, str]:
        """How log lines name the gang."""
        return {"source": self.source, "namespace": self.namespace, "gang": self.name}


class Generation(msgspec.Struct, frozen=True, gc=False):
    """Scope of a verdict: workload UID, restart attempt, epoch of suspensions (A5)."""

    uid: str
    attempt: int
    epoch: int

    def covers(self, other: "Generation") -> bool:
        """True if a verdict of this generation binds a barrier of the other: same UID and attempt, epoch not older."""
        return self.uid == other.uid != "" and self.attempt == other.attempt and self.epoch >= other.epoch


class VerdictKind(StrEnum):
    """What barriers do on a verdict."""

    RELEASE = "release"
    TIMEOUT = "timeout"


class Verdict(Value, frozen=True):
    """The one decision for a generation (A6.1)."""

    kind: VerdictKind
    generation: Generation
    cause: str
    """AllPodsStarted, TimedOut, IndexFailed or Bypassed."""
    message: str = ""


class WaitingSince(Value, frozen=True):
    """The gang's clock: when the first pod of a generation started (A7)."""

    generation: Generation
    at: float


class BarrierStage(IntEnum):
    """How far a pod's barrier has come."""

    WAITING = 0
    RUNNING = 1
    PASSED = 2
    """Exit code 0: released."""
    FAILED = 3


_WAITING, _, _, _FAILED = BarrierStage


class PendingReason(StrEnum):
    """Why a slot has no started pod (A9)."""

    NOT_CREATED = "NotCreated"
    """The Job has not created the pod, or the last one failed and its replacement does not exist yet."""
    QUOTA_DENIED = "QuotaDenied"
    """A ResourceQuota or another admission check rejected the pod."""
    UNSCHEDULED = "Unscheduled"
    """The scheduler found no node."""
    NODE_PROVISIONING = "NodeProvisioning"
    """An autoscaler announced a node for the pod."""
    IMAGE_PULL = "ImagePull"
    """An image of an earlier init container or, with prefetching, of a main container is not pulled yet."""
    EARLIER_INIT = "EarlierInit"
    """An init container before the barrier is running."""
    CRASH_LOOP = "CrashLoop"
    """An init container fails repeatedly."""
    TERMINATING = "Terminating"
    """The pod is being deleted; its replacement follows."""
    BARRIER_IMAGE_PULL = "BarrierImagePull"
    """The barrier's image is not pulled yet."""
    STARTING = "Starting"
    """The pod is bound, and its kubelet has not started the barrier yet."""
    INDEX_FAILED = "IndexFailed"
    """Its index has failed for good, so the Job creates no other pod for it."""


class PendingCause(Value, frozen=True):
    """Why a pod has not started: reason, and the message of scheduler, kubelet or API server."""

    reason: PendingReason
    message: str = ""


class PodSeen(Value, frozen=True):
    namespace: str
    name: str
    uid: str
    source: str
    gang: str
    workload_uid: str
    """"" if no Job owns the pod, whatever its labels claim."""
    job_uid: str
    replicated_job: str
    job_index: int
    index: int | None
    """Completion index; None in a NonIndexed Job."""
    attempt: int
    epoch: int
    phase: str
    deleting: bool
    bound: bool
    stage: BarrierStage
    created: float | None
    """Creation time; None once the pod has started and no message needs it."""
    barrier_since: float | None
    main_since: float | None
    """Start of the first main container, if known."""
    verdict: str
    """The verdict annotation, "" if none."""
    pending: PendingCause | None
    """Why the pod has not started; None once it has."""
    member: MemberSeen | None = None
    """Of a pod that is gated alone, not by a template."""
    token: str = ""
    """The same: its secret for the gate stream."""

    @property
    def live(self) -> bool:
        """Neither ended nor being deleted: it can belong to an attempt (K5)."""
        return not self.deleting and self.phase not in ("Failed", "Succeeded")

    @property
    def alive(self) -> bool:
        """Neither failed nor being deleted."""
        return not self.deleting and self.phase != "Failed"

    @property
    def started(self) -> bool:
        """A4: alive, and its barrier runs or has passed. A Succeeded pod counts."""
        return self.counts(())

    def counts(self, announced: Container[str]) -> bool:
        """A4: started, or announced on the gate stream before the kubelet's status. `announced`: UIDs of pods.

        Called for each pod in every pass, so it is written for speed.
        """
        if self.deleting or self.phase == "Failed":
            return False
        stage = self.stage
        if stage is _WAITING:
            return (self.bound and self.uid in announced) or self.phase == "Succeeded"
        return stage is not _FAILED or self.phase == "Succeeded"


ANY_POD: Final = "*"
"""UID of what stands for the Job of a gang without Jobs: each pod of the gang is its own. No object has it."""


class JobSeen(Value, frozen=True):
    namespace: str
    name: str
    uid: str
    source: str
    gang: str
    workload_uid: str
    """"" if that workload does not own the Job."""
    replicated_job: str
    job_index: int
    attempt: int
    suspended: bool = False
    deleting: bool = False
    complete: bool = False
    succeeded: int = 0
    completed: frozenset[int] = frozenset()
    failed: frozenset[int] = frozenset()
    """Indexes that have failed for good; none of a Job that has failed as a whole, which JobSet may create again."""
    workload: "WorkloadSeen | None" = None
    """The Job as a workload, where it is one itself."""


class Config(Value, frozen=True):
    """The user's groupSchedulingConfig (A2)."""

    timeout: int | None = None
    """Seconds from the first started pod; None: no timeout."""
    targets: tuple[str, ...] = ()
    """Names of replicatedJobs; empty: all."""


class ReplicatedJobSeen(Value, frozen=True):
    """One template of a workload's spec: a replicatedJob of a JobSet."""

    name: str
    replicas: int
    parallelism: int
    completions: int | None
    indexed: bool
    has_barrier: bool
    epoch: int
    devices: tuple[tuple[str, int], ...] = ()
    """Extended resources of each of its pods: (resource name, count)."""

    @property
    def pods_per_job(self) -> int:
        """A4: min(parallelism, completions), completions null meaning parallelism."""
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)

    @property
    def expected(self) -> int:
        """A4: its pods in the gang."""
        return self.replicas * self.pods_per_job


class DesiredCondition(Value, frozen=True):
    """Desired content of the condition GroupStarted."""

    status: str
    reason: str
    message: str

    def says(self, other: "DesiredCondition") -> bool:
        """Whether it has the same content."""
        return (self.status, self.reason, self.message) == (other.status, other.reason, other.message)


class ConditionSeen(DesiredCondition, frozen=True):
    """The condition GroupStarted on the workload."""

    since: str
    """lastTransitionTime."""

    @property
    def true_since(self) -> float | None:
        """Time at which the condition turned True, as with a release; None if it is not True or has no time."""
        try:
            return datetime.fromisoformat(self.since).timestamp() if self.status == "True" else None
        except ValueError:
            return None


class WorkloadSeen(Value, frozen=True):
    """A workload with a groupSchedulingConfig."""

    source: Source
    namespace: str
    name: str
    uid: str
    created: float
    config: Config
    bypass: bool
    releases_on_timeout: bool
    replicated_jobs: tuple[ReplicatedJobSeen, ...]
    finished: bool
    attempt: int = 0
    suspended: bool = False
    deleting: bool = False
    managed_elsewhere: bool = False
    config_problem: str = ""
    """Why the config is invalid: the workload was created while the webhook was off."""
    condition: ConditionSeen | None = None
    token: str = ""
    failed: bool = False
    finished_message: str = ""
    """Message of the workload's terminal condition."""
    owner: ObjectSeen | None = None
    """The pods' controller owner, where the pods are all there is of the workload."""
    bare_pod: str = ""
    """The same: a live pod without a barrier, so that a common start is no longer possible (K6)."""
    differing: tuple[str, ...] = ()
    """The same: live pods whose size, timeout or annotations are not the ones that count."""
    stale_start: str = ""
    """Version of a suspended workload whose status keeps the start of an earlier run, so that it cannot be resumed."""

    @property
    def key(self) -> GangKey:
        return GangKey(self.namespace, self.name, self.source.name)

    @property
    def shown_name(self) -> str:
        return self.source.shown_name(self.name)

    @property
    def involved_object(self) -> ObjectSeen:
        """The object that Events are about and that kubectl describes: itself, or the owner of its pods."""
        its = self.source
        return self.owner or ObjectSeen(api_version=its.api_version, kind=its.kind, name=self.name)

    @property
    def targets(self) -> tuple[ReplicatedJobSeen, ...]:
        """The replicatedJobs of the gang (A2: none named means all)."""
        wanted = self.config.targets
        return tuple(job for job in self.replicated_jobs if not wanted or job.name in wanted)

    @property
    def epoch(self) -> int:
        """The epoch of new pods of the targets."""
        return max((job.epoch for job in self.targets), default=0)


class ConfigMapSeen(Value, frozen=True):
    """A verdict ConfigMap: has our label and a gang's name."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    source: str
    gang: str
    """Name of its workload."""
    workload_uid: str
    """UID of its workload; "" without the annotation."""
    verdict: Verdict | None
    waiting_since: WaitingSince | None
    canonical: bool
    """The content is exactly what the controller writes, and the workload owns the ConfigMap."""
    deleting: bool = False
    written_at: float | None = None
    """When the API server wrote its last change."""
    membership: Membership | None = None
    """Of a start group."""
    condition: ConditionSeen | None = None
    """Of a start group, which has no object with a status."""


class GangSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Everything known of one gang at one moment."""

    workload: WorkloadSeen
    jobs: tuple[JobSeen, ...] = ()
    pods: tuple[PodSeen, ...] = ()
    config_map: ConfigMapSeen | None = None
    remembered: Verdict | None = None
    """The last verdict that this process read in the gang's ConfigMap, even if the ConfigMap has changed since."""
    config_map_conflict: bool = False
    """A ConfigMap of that name exists without our label."""
    announced: Mapping[str, float] = MappingProxyType({})
    """UIDs of pods with an open request on the gate stream, and the time of the first, by the controller's clock."""
    denials: tuple[tuple[str, str], ...] = ()
    """(Job name, message) of rejected pod creations, where Events were read."""
    provisioning: frozenset[str] = frozenset()
    """Unscheduled pods with a node on its way, where Events were read."""
    cannot_gather: str = ""
    """Why its pods can never be there at once, where their owner was read."""
    membership: Membership | None = None
    """The last one that this process read in a start group's ConfigMap, even if that was deleted since."""

    @property
    def own_config_map(self) -> ConfigMapSeen | None:
        """The ConfigMap of this workload, not of an earlier one of its name."""
        gate = self.config_map
        return gate if gate is not None and gate.workload_uid == self.workload.uid else None

    @property
    def stored_verdict(self) -> Verdict | None:
        """The verdict on this workload in its ConfigMap."""
        verdict = self.own_config_map.verdict if self.own_config_map is not None else None
        return verdict if verdict is not None and verdict.generation.uid == self.workload.uid else None


class MissingByReason(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Missing slots of a gang, or members of a pod group, with one reason (A9)."""

    reason: str
    """A PendingReason; of a pod group, its reason."""
    message: str
    """Of scheduler, kubelet or API server; the oldest slot's."""
    count: int
    slots: tuple[str, ...] = ()
    """The oldest few, oldest first; of a pod group, pods."""
    oldest_count: int = 0
    """How many of `slots` are among the oldest of the whole gang."""
    oldest_created_at: float | None = None
    """Creation time of the oldest pod; None: no pod exists."""
    command: str = ""
