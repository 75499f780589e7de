"""The words of a roll-back: what is seen of owners, which steps there are, and which traces they leave (G4)."""

from collections.abc import Mapping
from typing import Final

from jobset_gate.barrier.model import Value
from jobset_gate.podgroups.deadline import OwnerEviction
from jobset_gate.podgroups.label import group_label
from jobset_gate.podgroups.record import AdmissionRecord
from jobset_gate.podgroups.snapshot import MemberPod

JOB: Final = "Job"
JOBSET: Final = "JobSet"
FINISHED: Final = ("Succeeded", "Failed")
"""Phases of pods that hold nothing any more: there is nothing to be taken back."""

_DIGITS: Final = 20
"""Of a generation. Whoever may write to a Job may write longer ones, which Python refuses to read."""


class SuspendTarget(Value, frozen=True):
    """A Job or JobSet, that would have to be suspended; of a Job of a JobSet its JobSet, which would resume it."""

    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str
    suspended: bool = False
    mark: str = ""
    """Which roll-back has suspended it; "" if it was somebody else."""
    finished: bool = False
    """It has ended or is being deleted: its pods go by themselves."""
    by_kueue: bool = False
    managed_by: str = ""
    can_fail: bool = False
    """A rule of it can make one pod's end the end of the Job."""
    barrier: bool = False
    """Its pods wait for each other when they start: a JobSet of ours, that wants another epoch for its new pods."""
    others: tuple[str, ...] = ()
    """Names of its living pods that are not in the group."""


class PodProvenance(Value, frozen=True):
    """How a pod that a Job has made hangs together with it."""

    target: SuspendTarget | None = None
    """None: it is gone by now, and its pods will go or be nobody's."""
    labels: tuple[str, ...] = ()
    """The labels without which its Job would not know it; () if there are none."""


class DetachPod(Value, frozen=True):
    """Make its Job forget a pod: it looks at the exit codes of all pods it knows, also of those it deletes itself."""

    pod: MemberPod
    job: str
    """UID of its Job."""
    labels: tuple[str, ...]
    mark: str


class SuspendOwner(Value, frozen=True):
    """Suspend it, and write down that it was us."""

    target: SuspendTarget
    mark: str


class EvictionPlan(Value, frozen=True):
    """The steps, in the order of the fields: a later one is only taken when all earlier ones have been."""

    marks: tuple[SuspendOwner, ...] = ()
    """Only to be marked by now."""
    detaches: tuple[DetachPod, ...] = ()
    suspends: tuple[SuspendOwner, ...] = ()
    disrupts: tuple[MemberPod, ...] = ()
    deletes: tuple[MemberPod, ...] = ()
    terminating: tuple[MemberPod, ...] = ()
    """On their way: nothing to be done but to wait."""
    restarts: tuple[SuspendOwner, ...] = ()
    """What was marked, to be suspended when nothing else has been left for a while: for its start barrier."""
    blocked: tuple[OwnerEviction, ...] = ()
    """What cannot be taken back, and why."""
    resumes: tuple[SuspendTarget, ...] = ()
    """What was suspended and need not wait for what is blocked."""

    @property
    def all_gone(self) -> bool:
        """Nothing that was opened is left, but what is blocked."""
        return not (self.detaches or self.suspends or self.deletes or self.terminating)

    @property
    def done(self) -> bool:
        """And there is nothing else to do."""
        return self.all_gone and not self.restarts

    @property
    def blocked_pods(self) -> tuple[str, ...]:
        """Names of the pods that cannot be taken back."""
        return tuple(sorted(pod for it in self.blocked for pod in it.owner.pods))

    @property
    def blocked_message(self) -> str:
        """Why not, for people."""
        return "; ".join(it.why for it in self.blocked)


def generations_by_label(record: AdmissionRecord) -> dict[str, int]:
    """The generation that is taken back, by the label of each gang of the decision."""
    return {group_label(key): generation for key, generation in record.gangs}


def eviction_mark(held: str, generation: int) -> str:
    """How a roll-back signs what it does, on pods and their owners."""
    return f"{held}.{generation}"


def parse_mark(text: str) -> tuple[str, int]:
    """Label and generation of a mark; ("", 0) for what is none of ours."""
    held, _, number = text.rpartition(".")
    known = held and number.isascii() and number.isdecimal() and len(number) <= _DIGITS
    return (held, int(number)) if known else ("", 0)


def is_detached(pod: MemberPod) -> bool:
    """Whether its Job was made to forget it: nobody but us will ever delete it."""
    return pod.controller is None and bool(pod.group_label) and parse_mark(pod.eviction_mark)[0] == pod.group_label


def is_evictable(pod: MemberPod, wanted: Mapping[str, int]) -> bool:
    """Whether this pod is an opened one that must go before its group can be closed."""
    if pod.phase in FINISHED or pod.group_label not in wanted:
        return False
    return is_detached(pod) or (not pod.gated and 0 < pod.generation <= wanted[pod.group_label])


def is_job_pod(pod: MemberPod) -> bool:
    """Whether a Job has made it."""
    return pod.controller is not None and pod.controller.kind == JOB and pod.controller.api_version.startswith("batch/")
