"""What a pod's change can make different for its group: whether that is to be looked at, and whether it can wait (G3).

Hints only: whatever they say, the next look counts anew.
"""

from controllers.podgroups.entry import PodGroupEntry
from jobset_gate.podgroups.record import AdmissionMode, AdmissionRecord, AdmissionState
from jobset_gate.podgroups.snapshot import MemberPod


def still_gathers(parts: PodGroupEntry) -> bool:
    """Whether a group that was never opened, and has one held pod more, cannot be opened all the same."""
    group = parts.group
    if group is None or len(parts) == 1 or group.gangs:
        return False
    return group.valid and not group.pod_group_missing and not group.gathered


def only_progressed(record: AdmissionRecord | None, old: MemberPod | None, new: MemberPod | None) -> bool:
    """Whether a pod of an open group was opened, bound or started, and that is all."""
    if old is None or new is None or not (old.is_counted and new.is_counted and _lasting(old) == _lasting(new)):
        return False
    if (
        record is None
        or record.stage is not AdmissionState.OPEN
        or len(record.gangs) > 1
        or record.how is AdmissionMode.NATIVE
    ):
        return False
    return new.bound >= old.bound and new.gated <= old.gated


def can_wait(
    record: AdmissionRecord | None, parts: PodGroupEntry, old: MemberPod | None, new: MemberPod | None
) -> bool:
    """Whether there is nothing to be done about a group that has come on: its minimum is not bound by that."""
    newly = new is not None and new.bound and not (old is not None and old.bound)
    return record is None or not newly or record.satisfied is not None or parts.bound_count < record.minimum


def scheduling_facts(member: MemberPod | None) -> object:
    """All of a member that can make a difference to opening; many of its events are about something else."""
    if member is None:
        return None
    return (
        member.uid,
        member.is_counted,
        member.bound,
        member.gated,
        member.generation,
        member.foreign_gates,
        member.membership,
        member.shape,
        member.unsupported,
        member.barrier,
        member.priority,
        member.native,
        member.deleting,
        member.phase in ("Succeeded", "Failed"),
    )


def _lasting(member: MemberPod) -> object:
    """What stays the same while a pod is opened, bound and run."""
    return (
        member.uid,
        member.membership,
        member.shape,
        member.unsupported,
        member.barrier,
        member.priority,
        member.native,
        member.foreign_gates,
        member.eviction_mark,
    )
