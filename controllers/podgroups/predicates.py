"""Which change of a pod is for the reconciler, for the scheduler, for both at once, or for both some time later (G3).

Reading a group costs time per pod, so not every event may cause it: a group that lacks k members cannot be admitted
before k more exist, and one that lacks k bound pods is not satisfied before k more are bound. This only decides when a
group is read; what is read then decides all else.
"""

from enum import Enum, auto

from controllers.podgroups.membership import PodGroupEntry
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import MemberPod


class Effect(Enum):
    """What a change means for its group, or for all groups: the seconds in which changes are gathered before the group
    is reconciled, and whether an admission may follow from it.
    """

    DETAIL = auto(), 0.8, False
    """Nothing that admission depends on: the reconciler reads it, for status."""
    GATHERING = auto(), 0.8, False
    """One more gated pod of a group that still lacks others."""
    PROGRESS = auto(), 0.8, False
    """A pod of an admitted group was ungated, bound or started: the group needs no more room than before."""
    MINIMUM_BOUND = auto(), 0.0, True
    """The same, and the minimum may be bound, if only for a moment: the reconciler has to see it now."""
    RECORDED = auto(), 0.8, True
    """The admission record was read or written by this process, which continues without this event."""
    CHANGED = auto(), 0.1, True
    """Anything else about a group."""
    CAPACITY = auto(), 0.0, True
    """Nodes, what is bound to them, or quotas: of no single group."""

    def __init__(self, _: int, delay: float, admits: bool) -> None:
        self.delay, self.admits = delay, admits


def classify(
    entry: PodGroupEntry, record: AdmissionRecord | None, old: MemberPod | None, new: MemberPod | None
) -> Effect:
    """What the change of a pod from `old` to `new` means for its group; None: the pod is not there."""
    if old is None and new is not None and new.gated and record is None:
        return Effect.GATHERING if 1 < len(entry) < entry.needed else Effect.CHANGED
    if _scheduling_facts(old) == _scheduling_facts(new):
        return Effect.DETAIL
    if old is None or new is None or not _progressed(record, old, new):
        return Effect.CHANGED
    assert record is not None  # noqa: S101 - or there was no progress
    newly_bound = new.bound and not old.bound and record.satisfied is None
    return Effect.MINIMUM_BOUND if newly_bound and entry.bound_count >= record.minimum else Effect.PROGRESS


def _progressed(record: AdmissionRecord | None, old: MemberPod, new: MemberPod) -> bool:
    """Whether a pod of an admitted group was ungated, bound or started, and nothing else."""
    if record is None or record.stage is not AdmissionState.OPEN:
        return False
    if len(record.gangs) > 1 or record.how is AdmissionMode.NATIVE:
        return False
    if not (old.is_counted and new.is_counted) or _fixed_facts(old) != _fixed_facts(new):
        return False
    return new.bound >= old.bound and new.gated <= old.gated


def _scheduling_facts(pod: MemberPod | None) -> object:
    """All of a pod that admission depends on; many events of a pod are about something else."""
    if pod is None:
        return None
    return (
        _fixed_facts(pod),
        pod.is_counted,
        pod.bound,
        pod.gated,
        pod.generation,
        pod.deleting,
        pod.phase in ("Succeeded", "Failed"),
    )


def _fixed_facts(pod: MemberPod) -> object:
    """What stays the same while a pod is ungated, bound and run."""
    return (
        pod.uid,
        pod.membership,
        pod.shape,
        pod.unsupported,
        pod.barrier,
        pod.priority,
        pod.native,
        pod.foreign_gates,
        pod.eviction_mark,
    )
