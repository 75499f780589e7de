"""A group and the start barrier that its pods wait in as well, as the keeper sees them (G6).

What stands on templates was judged at the door (with_barrier.py); here it is what only the PodGroup says.
"""

from collections.abc import Callable, Iterator

from jobset_gate import names
from jobset_gate.barrier.model import JobSetSeen
from jobset_gate.objects.field_error import annotation_path, child_path
from jobset_gate.podgroups import barrier_compat
from jobset_gate.podgroups.model import Flavor, MergedGroup
from jobset_gate.podgroups.preconditions import GroupReason
from jobset_gate.podgroups.snapshot import GroupSnapshot, MemberPod

JobSetLookup = Callable[[str, str], JobSetSeen | None]
"""A gated JobSet by namespace and name; None: it has no gate, or has not been seen yet."""


def barrier_hold(seen: GroupSnapshot, look: JobSetLookup) -> GroupReason | None:
    """Why a group may not be opened: its minimum is not what the barrier of its pods waits for. None: it is, or they
    wait in none.
    """
    group = seen.group
    if group.minimum is None:
        return None
    unknown = sorted({it.jobset for it in seen.members if it.barrier and _unseen(it, look)})
    if unknown:  # a new leader may see the pods first
        text = f"its pods also wait in the start barrier of JobSet {', '.join(unknown)}, which has not been seen yet"
        return GroupReason(reason=names.REASON_GATHERING, message=text)
    for jobset in _jobsets(seen, look):
        expected = sum(job.expected for job in jobset.targets)
        wrong = barrier_compat.minimum_conflict(_minimum_path(group), group.minimum, expected)
        if wrong is not None:
            return GroupReason(reason=names.REASON_INVALID_GROUP, message=f"{wrong} (JobSet {jobset.name})")
    return None


def barrier_doubts(seen: GroupSnapshot, look: JobSetLookup) -> tuple[str, ...]:
    """What to warn of: a barrier gives up while the group is still being placed."""
    told = (
        (it.name, barrier_compat.timeout_warning(it.config.timeout, seen.group.wait)) for it in _jobsets(seen, look)
    )
    return tuple(f"JobSet {name}: {text}" for name, text in told if text is not None)


def _jobsets(seen: GroupSnapshot, look: JobSetLookup) -> Iterator[JobSetSeen]:
    """The gated JobSets that its pods come from, by name."""
    for name in sorted({it.jobset for it in seen.members if it.jobset and it.alive}):
        jobset = look(seen.group.key.namespace, name)
        if jobset is not None:
            yield jobset


def _unseen(member: MemberPod, look: JobSetLookup) -> bool:
    return member.alive and member.gated and look(member.namespace, member.jobset) is None


def _minimum_path(group: MergedGroup) -> str:
    """Where it is said: on the pods, if they say it, or else in the PodGroup."""
    match group.key.design:
        case Flavor.ALIBABA:
            return child_path("metadata.labels", names.ALIBABA_MINIMUM)
        case Flavor.KEP_24:
            return "spec.minMembers"
        case Flavor.KOORDINATOR if group.pod_group is None or group.pod_group.spec.minimum != group.minimum:
            return annotation_path(names.KOORDINATOR_MINIMUM)
        case _:
            return "spec.minMember"
