"""The words of an explanation: where a gang stands, what is missing and why, and what to do about it.

Frozen and free of layout: `explain.gang` finds them, `explain.text` and the command line say them.
"""

from enum import StrEnum

from jobset_gate.barrier.member import ObjectSeen
from jobset_gate.barrier.model import MissingByReason, Value


class GangState(StrEnum):
    """Where a JobSet stands. A pod group's state is its one reason (G5), which is a word of names.py."""

    WAITING = "Waiting"
    """The gate is closed, and pods are missing."""
    DUE = "Due"
    """Everything is there for a verdict, and nobody has written one yet."""
    RELEASED = "Released"
    """The gate is open."""
    TIMED_OUT = "TimedOut"
    """The time was up, and the gang was ended; it stays so when the JobSet has failed for it."""
    INDEX_FAILED = "IndexFailed"
    """An index has failed for good, so the gang was ended at once; it stays so like TimedOut."""
    SUSPENDED = "Suspended"
    """Nothing counts while the JobSet is suspended."""
    COMPLETED = "Completed"
    """The JobSet has ended well."""
    FAILED = "Failed"
    """The JobSet has failed, and not for a verdict on its gate."""
    IDLE = "Idle"
    """No pod of the start group is live; the next ones gather again."""
    DELETING = "Deleting"
    """The JobSet is on its way out."""
    MANAGED_ELSEWHERE = "ManagedElsewhere"
    """Its managedBy names another controller than JobSet's."""
    NOT_GATED = "NotGated"
    """It asks for no gate."""
    GATE_MISSING = "GateMissing"
    """It asks for a gate, and nothing holds its pods."""
    CONFIG_MAP_CONFLICT = "ConfigMapConflict"
    """A ConfigMap of the gang's name is not ours, so no verdict can be written."""


WAITING_STATES = frozenset({GangState.WAITING, GangState.DUE})
"""The gate is closed, and the gang is not suspended."""
GIVEN_UP_STATES = frozenset({GangState.TIMED_OUT, GangState.INDEX_FAILED})
"""Of a gang that was ended by a verdict."""


class ControllerStatus(Value, frozen=True):
    """Whether a controller runs. `leads` None: that could not be read."""

    leads: bool | None = None
    message: str = ""


class FailurePolicies(Value, frozen=True):
    """What the user has written about failures, as far as a timeout meets it (A7)."""

    max_restarts: int | None = None
    """Of the JobSet's failurePolicy; None: it has none."""
    rules: tuple[str, ...] = ()
    """Actions of the failurePolicy's rules, in order."""
    counted: int = 0
    """Restarts that count towards the limit so far."""
    backoff_limits: tuple[int, ...] = ()
    """Of the Jobs that the gang is made of, each once."""
    per_index: bool = False
    """The limit is that of each index, in the only Job of the gang."""
    restarts_in_place: bool = True
    """Some pods have restartPolicy OnFailure: their kubelet starts the barrier again."""
    exit_actions: tuple[str, ...] = ()
    """What podFailurePolicies do about the barrier's exit code, each once."""
    queue: str = ""
    """Kueue's queue, if it is in one: Kueue suspends and resumes it."""


class ReplicatedJobCount(Value, frozen=True):
    """One replicatedJob's share."""

    name: str
    started: int
    expected: int


class ExplainedPod(Value, frozen=True):
    """The pod that the command line names."""

    name: str
    slot: str
    message: str


class Explanation(Value, frozen=True):
    """Everything there is to say of one gang at one moment."""

    kind: str
    """JobSet, Job, StartGroup or PodGroup."""
    namespace: str
    name: str
    state: str
    source: str = ""
    """Of a gang with a start barrier; "" for a pod group."""
    owner: ObjectSeen | None = None
    """What owns the pods, where they are all there is of the workload."""
    attempt: int | None = None
    """Of a gang with a start barrier."""
    message: str = ""
    """One sentence: the verdict's, the condition's, the group's."""
    now: float = 0.0
    expected: int = 0
    started: int | None = None
    """Of one that has ended, as many as had when that was decided. None: not known, for lack of rights or by now."""
    passed: int = 0
    """Pods that have gone through the barrier."""
    parts: tuple[ReplicatedJobCount, ...] = ()
    missing: tuple[MissingByReason, ...] = ()
    differing: tuple[str, ...] = ()
    """Pods that ask for something else than what counts, so that they would have to be deleted."""
    timeout: int | None = None
    """Seconds; None: it waits for ever."""
    waiting_since: float | None = None
    """When the clock began to run; None: it does not."""
    decided: float | None = None
    """When the gate was opened, as far as that is known."""
    afterwards: str = ""
    """What happens at the timeout, or has to follow from it."""
    subject: ExplainedPod | None = None
    controller: ControllerStatus | None = None
    unknown: tuple[str, ...] = ()
    """What could not be read, and so is not known."""
    commands: tuple[str, ...] = ()
    """What to run next, the most telling first."""

    @property
    def left(self) -> float | None:
        """Seconds until the timeout, 0 when it is over; None while no clock runs or without a timeout."""
        if self.timeout is None or self.waiting_since is None:
            return None
        return max(0.0, self.waiting_since + self.timeout - self.now)
