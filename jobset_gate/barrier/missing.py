"""The missing slots of a gang, by reason: "37 pods: Unscheduled: 0/40 nodes are available", oldest first (A9).

Messages about one cause differ by a number, a pod's name or the kubelet's back-off: such pods are one group. Computed
in every pass over a waiting gang.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from heapq import nsmallest
from itertools import islice, repeat

import msgspec

from jobset_gate.barrier.count import JobSlots, list_job_slots
from jobset_gate.barrier.model import GangSnapshot, MissingByReason, PendingCause, PendingReason, PodSeen, Value
from jobset_gate.barrier.source import Source

_NOT_YET = "has not created it yet"
NOT_CREATED_YET = f"the Job controller {_NOT_YET}"
"""Message of a slot without a pod whose Job exists; the reason may be in Events."""

_NOT_COUNTED = PendingCause(reason=PendingReason.STARTING, message="is not counted yet")
"""Cause of a started pod whose Job is suspended or unknown."""
MAX_NAMED_SLOTS = 10
"""Slots named per reason, and in all (A7)."""
MAX_COMMANDS = 3

_POD = re.compile(r'\bpods? "[^"]*"')
_QUOTA = re.compile(r"exceeded quota: [^,]+")
_QUOTED = re.compile(r'"[^"]*"')
_NUMBER = re.compile(r"\d+")
_PULLS = frozenset({PendingReason.IMAGE_PULL, PendingReason.BARRIER_IMAGE_PULL})


class MissingSlot(Value, frozen=True):
    """One slot without a started pod."""

    replicated_job: str
    job_index: int
    index: int | None
    cause: PendingCause
    created_at: float | None = None
    pod: str = ""

    def slot(self, source: Source) -> str:
        """`workers-2/17`; `workers-2` in a NonIndexed Job; `17` where a workload has one Job only; else the pod."""
        job = f"{self.replicated_job}-{self.job_index}" if self.replicated_job else ""
        index = "" if self.index is None else source.shown_index(self.index)
        return "/".join(part for part in (job, index) if part) or self.pod


MissingInJob = tuple[list[PodSeen], list[MissingSlot], int]
"""The missing slots of a JobSlots: pods that have not started, the first slots without a pod, and how many follow."""


def missing_by_job(
    seen: GangSnapshot, limit: int | None = None, job_slots: Iterable[JobSlots] | None = None
) -> Iterator[MissingInJob]:
    """Missing slots per JobSlots; slots without a pod differ by index only, so at most `limit` of them are listed."""
    denials = dict(seen.denials)
    for slots in list_job_slots(seen) if job_slots is None else job_slots:
        missing = slots.missing_count
        if not missing:
            continue
        if failed := slots.failed_count:
            yield _failed_slots(slots, failed, limit)
            missing -= failed
        taken: set[int | None] = {pod.index for pod in slots.started_pods} | slots.failed_indexes
        pods = _pending_pods(slots, taken)[:missing]
        empty = missing * slots.repeat - len(pods)
        shown = empty if limit is None else min(empty, limit)
        cause = _cause_without_pod(seen, slots, denials)
        absent = list(_absent_slots(slots, taken | {pod.index for pod in pods}, shown, missing, cause))
        yield pods, absent, empty - shown


def _failed_slots(slots: JobSlots, many: int, limit: int | None) -> MissingInJob:
    """`many` slots whose indexes have failed for good, in the words of their last pods as far as these exist."""
    indexes = sorted(it for it in slots.failed_indexes if it < slots.index_count)[:many]
    last = {
        pod.index: msgspec.structs.replace(
            pod, pending=PendingCause(reason=PendingReason.INDEX_FAILED, message=pod.pending.message)
        )
        for pod in sorted(slots.own_pods, key=_age)
        if pod.index in indexes and pod.phase == "Failed" and pod.pending is not None
    }
    gone = PendingCause(reason=PendingReason.INDEX_FAILED, message="its pods are gone")
    absent = [
        MissingSlot(replicated_job=slots.target.name, job_index=slots.job_index, index=index, cause=gone)
        for index in indexes
        if index not in last
    ]
    return list(last.values()), absent[:limit], len(absent) - len(absent[:limit])


def slot_of_pod(seen: GangSnapshot, pod: PodSeen) -> MissingSlot:
    """The slot of a pod that has not started."""
    return MissingSlot(
        replicated_job=pod.replicated_job,
        job_index=pod.job_index,
        index=pod.index,
        cause=_pending_cause(seen, pod),
        created_at=pod.created,
        pod=pod.name,
    )


def _pending_cause(seen: GangSnapshot, pod: PodSeen) -> PendingCause:
    cause = pod.pending or _NOT_COUNTED
    if seen.provisioning and cause.reason is PendingReason.UNSCHEDULED and pod.name in seen.provisioning:
        return _provisioning(cause.message)
    return cause


@lru_cache(maxsize=256)
def _provisioning(detail: str) -> PendingCause:
    return PendingCause(reason=PendingReason.NODE_PROVISIONING, message=detail)


def _pending_pods(slots: JobSlots, taken: set[int | None]) -> list[PodSeen]:
    """The pods that have not started, one per slot; a replacement wins over the pod that it replaces."""
    idle = [pod for pod in slots.pods if not pod.counts(slots.announced)]
    if not slots.target.indexed:
        return sorted((pod for pod in idle if pod.alive), key=lambda pod: pod.name)
    by_slot: dict[int, PodSeen] = {}
    for pod in idle:
        if pod.index is None or pod.index in taken or pod.index in slots.completed_indexes:
            continue
        if pod.alive or pod.index not in by_slot:
            by_slot[pod.index] = pod
    return [by_slot[index] for index in sorted(by_slot)]


def _absent_slots(
    slots: JobSlots, taken: set[int | None], many: int, each: int, cause: PendingCause
) -> Iterator[MissingSlot]:
    """`many` slots without a pod, `each` per Job, lowest index first: the order in which Jobs create pods."""
    done, first = slots.completed_indexes, slots.job_index
    free = (index for index in range(slots.index_count) if index not in taken and index not in done)
    indexes = tuple(islice(free if slots.target.indexed else repeat(None), min(each, many)))
    for number, index in islice(((n, i) for n in range(first, first + slots.repeat) for i in indexes), many):
        yield MissingSlot(replicated_job=slots.target.name, job_index=number, index=index, cause=cause)


def _cause_without_pod(seen: GangSnapshot, slots: JobSlots, denials: dict[str, str]) -> PendingCause:
    if slots.suspended:
        message = f"the {seen.workload.source.kind} or its Job is suspended"
        return PendingCause(reason=PendingReason.NOT_CREATED, message=message)
    if slots.job is None:
        return PendingCause(reason=PendingReason.NOT_CREATED, message="its Job does not exist yet")
    if slots.job.name in denials:
        return PendingCause(reason=PendingReason.QUOTA_DENIED, message=denials[slots.job.name])
    owner = seen.workload.owner
    message = NOT_CREATED_YET if owner is None else f"the {owner.kind} {owner.name} {_NOT_YET}"
    return PendingCause(reason=PendingReason.NOT_CREATED, message=message)


# --- By reason -------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Cause:
    """The missing slots with one cause."""

    causes: list[PendingCause] = field(default_factory=list)
    pods: list[PodSeen] = field(default_factory=list)
    absent: list[MissingSlot] = field(default_factory=list)
    """The first few slots without a pod."""
    more: int = 0

    @property
    def count(self) -> int:
        return len(self.pods) + len(self.absent) + self.more


def missing_by_reason(seen: GangSnapshot, job_slots: Iterable[JobSlots] | None = None) -> tuple[MissingByReason, ...]:
    """The missing slots of a gang, oldest first."""
    groups = _groups(seen, job_slots)
    oldest = [_oldest(seen, group) for group in groups]
    found = [_describe(seen, *it) for it in zip(groups, oldest, _oldest_counts(oldest), strict=True)]
    # What can never start ends the gang, so it is named first.
    found.sort(
        key=lambda it: (
            it.reason != PendingReason.INDEX_FAILED,
            it.oldest_created_at is None,
            it.oldest_created_at or 0.0,
            -it.count,
            it.reason,
        )
    )
    return tuple(found)


def _groups(seen: GangSnapshot, job_slots: Iterable[JobSlots] | None) -> Sequence[_Cause]:
    found: dict[tuple[str, str], _Cause] = {}
    by_identity: dict[int, _Cause] = {}
    """Pods with the same cause mostly share the object, which its group keeps alive."""
    for pods, absent, more in missing_by_job(seen, MAX_NAMED_SLOTS, job_slots):
        for pod in pods:
            cause = _pending_cause(seen, pod)
            group = by_identity.get(id(cause))
            if group is None:
                group = by_identity[id(cause)] = found.setdefault(_cause_key(cause), _Cause())
                group.causes.append(cause)
            group.pods.append(pod)
        if absent:
            group = found.setdefault(_cause_key(absent[0].cause), _Cause())
            group.causes.append(absent[0].cause)
            group.more += more
            group.absent += absent
    return tuple(found.values())


def is_not_created(missing: MissingByReason) -> bool:
    """True for slots whose pods should exist; Events may say why they do not."""
    return missing.reason == PendingReason.QUOTA_DENIED or missing.message.endswith(_NOT_YET)


def commands(found: Iterable[MissingByReason]) -> tuple[str, ...]:
    """Commands that show more, the most useful first."""
    return tuple(dict.fromkeys(it.command for it in found if it.command))[:MAX_COMMANDS]


@lru_cache(maxsize=4096)
def _cause_key(cause: PendingCause) -> tuple[str, str]:
    return cause.reason.value, cause_key(cause)


def cause_key(cause: PendingCause) -> str:
    """Equal for messages that mean the same cause."""
    detail = cause.message
    if cause.reason is PendingReason.QUOTA_DENIED:
        quota = _QUOTA.search(detail)
        return quota[0] if quota else _POD.sub("", detail)
    if cause.reason in _PULLS:
        container, image = detail.partition(":")[0], _QUOTED.search(detail)
        return f"{container} {image[0]}" if image else detail
    return without_numbers(_QUOTED.sub("", detail) if cause.reason is PendingReason.STARTING else detail)


def without_numbers(text: str) -> str:
    """Numbers differ from pod to pod while the cause is the same."""
    return _NUMBER.sub("#", text)


def _oldest(seen: GangSnapshot, group: _Cause) -> list[MissingSlot]:
    """The oldest few pods, then slots without a pod in the order of the spec."""
    pods = nsmallest(MAX_NAMED_SLOTS, group.pods, key=_age)
    return ([slot_of_pod(seen, pod) for pod in pods] + group.absent)[:MAX_NAMED_SLOTS]


def _age(pod: PodSeen) -> float:
    return math.inf if pod.created is None else pod.created


def _oldest_counts(oldest: Sequence[Sequence[MissingSlot]]) -> list[int]:
    """How many of each group are among the oldest of all."""
    ages = sorted(
        (math.inf if one.created_at is None else one.created_at, number)
        for number, some in enumerate(oldest)
        for one in some
    )
    counts = Counter(number for _, number in ages[:MAX_NAMED_SLOTS])
    return [counts[number] for number in range(len(oldest))]


def _describe(seen: GangSnapshot, group: _Cause, oldest: Sequence[MissingSlot], oldest_count: int) -> MissingByReason:
    first = oldest[0]
    cause, many = first.cause, group.count
    if cause.reason in _PULLS:
        # The kubelet reports the error only during an attempt, between two attempts only the back-off.
        cause = max(group.causes, key=lambda it: len(it.message))
    return MissingByReason(
        reason=cause.reason.value,
        message=_POD.sub("pods", cause.message) if many > 1 and "pod" in cause.message else cause.message,
        count=many,
        slots=tuple(slot for slot in (one.slot(seen.workload.source) for one in oldest) if slot),
        oldest_count=oldest_count,
        oldest_created_at=first.created_at,
        command=_command(seen, cause, first),
    )


def _command(seen: GangSnapshot, cause: PendingCause, one: MissingSlot) -> str:
    """A command that shows more."""
    namespace = seen.workload.namespace
    if one.pod:
        match cause.reason:
            case PendingReason.NODE_PROVISIONING:
                return f"kubectl get events -n {namespace} --field-selector involvedObject.name={one.pod}"
            case PendingReason.EARLIER_INIT | PendingReason.CRASH_LOOP:
                container = re.split("[: ]", cause.message, maxsplit=1)[0]
                return f"kubectl logs {one.pod} -c {container} -n {namespace}"
            case _:
                return f"kubectl describe pod {one.pod} -n {namespace}"
    if cause.reason is PendingReason.QUOTA_DENIED and _QUOTA.search(cause.message):
        return f"kubectl describe resourcequota -n {namespace}"
    place, its = (one.replicated_job, one.job_index), seen.workload.involved_object
    job = next((it.name for it in seen.jobs if (it.replicated_job, it.job_index) == place), "")
    kind, name = ("job", job) if job and seen.workload.owner is None else (its.kind.lower(), its.name)
    return f"kubectl describe {kind} {name} -n {namespace}"
