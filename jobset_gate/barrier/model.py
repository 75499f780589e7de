"""The words of the rules: what was seen of a gang, and what is decided about it. Frozen, and free of field paths.

Times are seconds since the epoch as floats. `msgspec.Struct` instead of dataclasses because ten thousand of the small
ones are made per second and kept.
"""

from collections.abc import Container, Mapping
from enum import IntEnum, StrEnum
from types import MappingProxyType

import msgspec

from jobset_gate import names
from jobset_gate.barrier.missing_model import MissingByReason


class Value(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Base of every word: immutable, compared by value."""


# --- Generations and verdicts (A5, A6) -------------------------------------------------------------------------------


class Generation(msgspec.Struct, frozen=True, gc=False):
    """What a verdict is valid for: JobSet UID, restart attempt, epoch of suspensions (A5)."""

    uid: str
    attempt: int
    epoch: int

    def covers(self, other: "Generation") -> bool:
        """Whether a verdict of this generation binds a barrier of the other: same life and attempt, epoch not older."""
        return self.uid == other.uid != "" and self.attempt == other.attempt and self.epoch >= other.epoch


class VerdictKind(StrEnum):
    """What a verdict tells the barriers to do."""

    RELEASE = "release"
    TIMEOUT = "timeout"


class Verdict(Value, frozen=True):
    """One decision for one generation, made once (A6.1)."""

    kind: VerdictKind
    generation: Generation
    cause: str
    """AllPodsStarted, TimedOut or Bypassed."""
    message: str = ""


class WaitingSince(Value, frozen=True):
    """The gang's clock: when the first pod of a generation started (A7)."""

    generation: Generation
    at: float


# --- What was seen ---------------------------------------------------------------------------------------------------


class BarrierStage(IntEnum):
    """How far a pod's barrier has come."""

    WAITING = 0
    RUNNING = 1
    PASSED = 2
    """It ended with exit code 0: it was released."""
    FAILED = 3


_WAITING, _, _, _FAILED = BarrierStage


class PendingReason(StrEnum):
    """Why a pod is missing (A9). `Starting` is ours: a pod on its node of which the kubelet has said nothing yet."""

    NOT_CREATED = "NotCreated"
    """There is no pod: its Job has not made it, or the last one has failed and its successor is not there yet."""
    QUOTA_DENIED = "QuotaDenied"
    """A ResourceQuota, or another check at creation, has refused it."""
    UNSCHEDULED = "Unscheduled"
    """No node takes it."""
    NODE_PROVISIONING = "NodeProvisioning"
    """An autoscaler has said that a node is coming for it."""
    IMAGE_PULL = "ImagePull"
    """An image cannot be pulled, or is being pulled: of an earlier init container or, with prefetching, a main one."""
    EARLIER_INIT = "EarlierInit"
    """An init container before the barrier still runs."""
    CRASH_LOOP = "CrashLoop"
    """An init container fails again and again."""
    TERMINATING = "Terminating"
    """It is being deleted, and its successor comes after that."""
    BARRIER_IMAGE_PULL = "BarrierImagePull"
    """The image of the barrier cannot be pulled, or is being pulled."""
    STARTING = "Starting"
    """It is on its node, and the kubelet has not come to the barrier yet."""


class PendingCause(Value, frozen=True):
    """Why a pod has not started, in one class and in the words of whoever holds it up."""

    reason: PendingReason
    message: str = ""


class PodSeen(Value, frozen=True):
    """A gated pod."""

    namespace: str
    name: str
    uid: str
    gang: str
    """The JobSet's name."""
    jobset_uid: str
    """"" if no Job made it, whatever its labels say."""
    job_uid: str
    """Of the Job that made it, by its owner reference."""
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
    """When it was created; None once it has started, when nobody asks any more."""
    barrier_since: float | None
    main_since: float | None
    """When its first main container started, as far as known."""
    verdict: str
    """The verdict annotation as it stands, "" if none."""
    pending: PendingCause | None
    """Why it has not started; None once it has."""

    @property
    def alive(self) -> bool:
        """Neither failed nor on its way out."""
        return not self.deleting and self.phase != "Failed"

    @property
    def started(self) -> bool:
        """A4: its barrier runs or has passed, and it is alive. A Succeeded pod counts."""
        return self.counts(())

    def counts(self, announced: Container[str]) -> bool:
        """A4: it has started, or says so on the gate stream before its kubelet does. Announced are UIDs of pods.

        Asked of each pod in every pass, so it goes without a detour.
        """
        if self.deleting or self.phase == "Failed":
            return False
        stage = self.stage
        if stage is _WAITING:
            return (self.bound and self.uid in announced) or self.phase == "Succeeded"
        return stage is not _FAILED or self.phase == "Succeeded"


class JobSeen(Value, frozen=True):
    """A gated Job."""

    namespace: str
    name: str
    uid: str
    gang: str
    jobset_uid: str
    """"" if that JobSet did not make it."""
    replicated_job: str
    job_index: int
    attempt: int
    suspended: bool
    deleting: bool
    complete: bool
    succeeded: int
    completed: frozenset[int]
    """Completed indexes of an Indexed Job."""


class Config(Value, frozen=True):
    """The user's groupSchedulingConfig (A2)."""

    timeout: int | None = None
    """Seconds from the first started pod; None: wait for ever."""
    targets: tuple[str, ...] = ()
    """Names of replicatedJobs; empty: all of them."""


class ReplicatedJobSeen(Value, frozen=True):
    """One replicatedJob of a JobSet's live spec."""

    name: str
    replicas: int
    parallelism: int
    completions: int | None
    indexed: bool
    has_barrier: bool
    epoch: int
    devices: tuple[tuple[str, int], ...] = ()
    """What each of its pods occupies beyond cpu, memory and disk: (resource name, how many)."""

    @property
    def pods_per_job(self) -> int:
        """A4: min(parallelism, completions), completions null meaning parallelism."""
        return self.parallelism if self.completions is None else min(self.parallelism, self.completions)

    @property
    def expected(self) -> int:
        """A4: its part of the gang."""
        return self.replicas * self.pods_per_job


class ConditionSeen(Value, frozen=True):
    """Our condition as it stands on the JobSet."""

    status: str
    reason: str
    message: str
    since: str
    """When its status last changed, as the API has it."""


class JobSetSeen(Value, frozen=True):
    """A JobSet that asks for a gang."""

    namespace: str
    name: str
    uid: str
    created: float
    attempt: int
    suspended: bool
    deleting: bool
    finished: bool
    """Completed or failed, for good."""
    managed_elsewhere: bool
    config: Config
    config_problem: str
    """Not empty: what is wrong with a config that came in while the webhook was off."""
    bypass: bool
    releases_on_timeout: bool
    replicated_jobs: tuple[ReplicatedJobSeen, ...]
    condition: ConditionSeen | None
    token: str = ""
    """What its pods show at the gate stream; "" if they were told of none."""
    failed: bool = False
    """It has finished, and not well."""
    finished_message: str = ""
    """What the JobSet controller said when it finished."""

    @property
    def targets(self) -> tuple[ReplicatedJobSeen, ...]:
        """The replicatedJobs that the gang is made of (A2: none named means all)."""
        wanted = self.config.targets
        return tuple(job for job in self.replicated_jobs if not wanted or job.name in wanted)

    @property
    def epoch(self) -> int:
        """The epoch that new pods of the targets will carry."""
        return max((job.epoch for job in self.targets), default=0)


class ConfigMapSeen(Value, frozen=True):
    """A ConfigMap with our label and the name of a gang's."""

    namespace: str
    name: str
    uid: str
    resource_version: str
    jobset_uid: str
    """The life of the JobSet it belongs to; "" when its annotation is gone."""
    verdict: Verdict | None
    waiting_since: WaitingSince | None
    canonical: bool
    """It holds just what we would have written: no other keys, no garbage, owned by that JobSet."""
    deleting: bool = False

    @property
    def gang(self) -> str:
        """The name of the JobSet it is for."""
        return self.name.removesuffix(names.CONFIG_MAP_SUFFIX)


class GangSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """All that is known of one gang at one moment."""

    jobset: JobSetSeen
    jobs: tuple[JobSeen, ...] = ()
    pods: tuple[PodSeen, ...] = ()
    config_map: ConfigMapSeen | None = None
    remembered: Verdict | None = None
    """The last verdict that this process saw in the gang's ConfigMap, whatever has become of that since."""
    config_map_conflict: bool = False
    """A ConfigMap of the gang's name exists and is not ours."""
    announced: Mapping[str, float] = MappingProxyType({})
    """UIDs of pods that hold a request on the gate stream open, and since when by the controller's clock."""
    denials: tuple[tuple[str, str], ...] = ()
    """(Job name, message) of pods that a quota or an admission refused, where that was looked up."""
    provisioning: frozenset[str] = frozenset()
    """Names of unscheduled pods for which an autoscaler said that a node is on its way, where that was looked up."""


# --- What was counted ------------------------------------------------------------------------------------------------


class GangCount(Value, frozen=True):
    """The count of a gang (A4)."""

    expected: int
    started: int
    per_job: tuple[tuple[str, int, int], ...]
    """(replicatedJob, started, expected)."""
    epoch: int
    """Highest epoch that a counted pod carries; -1 if none is counted."""
    live_epoch: int
    """Highest epoch that any pod alive carries; -1 if there is none."""
    first_start: float | None
    """Earliest start of a counted pod of the live epoch: older ones started for an earlier generation."""
    first_announced: float | None = None
    """The same of those of which only an announcement tells; by the controller's clock, not in whole seconds."""
    last_start: float | None = None

    @property
    def complete(self) -> bool:
        """Every slot is started or needs no pod any more."""
        return self.started >= self.expected


# --- What is decided -------------------------------------------------------------------------------------------------


class DesiredCondition(Value, frozen=True):
    """What our condition on the JobSet shall say."""

    status: str
    reason: str
    message: str


class Ignore(Value, frozen=True):
    """Nothing to do and nothing to say (A10): finished, being deleted, or somebody else's."""

    requeue_after: None = None


class Blocked(Value, frozen=True):
    """Something stands in the way that waiting will not mend: say it on the JobSet."""

    condition: DesiredCondition
    requeue_after: float | None = None


class Wait(Value, frozen=True):
    """Not all are there. `clock` is to be kept in the ConfigMap, which is to exist."""

    condition: DesiredCondition
    clock: WaitingSince | None
    requeue_after: float | None
    """Seconds until the gang's own clock runs out."""
    expected: int
    started: int
    missing: tuple[MissingByReason, ...]
    """The missing slots by reason, longest-waiting first; () while it is suspended."""
    verdict: Verdict | None = None
    """The last one taken on this life of the JobSet, for an older generation: the ConfigMap goes on holding it."""

    @property
    def missing_count(self) -> int:
        """Slots still to be filled: fewer new starts than this cannot complete the gang."""
        return self.expected - self.started


class Decide(Value, frozen=True):
    """A verdict to be written by compare-and-swap; whoever loses looks again."""

    verdict: Verdict
    clock: WaitingSince | None
    condition: DesiredCondition
    requeue_after: None = None


class Enforce(Value, frozen=True):
    """A verdict that was taken stands: see that the ConfigMap holds it and that every waiting barrier hears it."""

    verdict: Verdict
    clock: WaitingSince | None
    condition: DesiredCondition
    requeue_after: None = None


Decision = Ignore | Blocked | Wait | Decide | Enforce
