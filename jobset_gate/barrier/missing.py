"""The missing slots of a gang, by reason: "37 pods: Unscheduled: 0/40 nodes are available", oldest first (A9).

Messages about one cause differ by a number, a pod's name or the kubelet's back-off: such pods are one group. Computed
in every pass over a waiting gang.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice

from jobset_gate.barrier.count import JobSlots, list_job_slots
from jobset_gate.barrier.model import GangSnapshot, MissingByReason, PendingCause, PendingReason, PodSeen, Value

NOT_CREATED_YET = "the Job controller has not created it yet"
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
    """Creation time of its pod."""
    pod: str = ""
    """Name of its pod."""

    @property
    def slot(self) -> str:
        """`workers-2/17`; `workers-2` in a NonIndexed Job."""
        job = f"{self.replicated_job}-{self.job_index}"
        return job if self.index is None else f"{job}/{self.index}"


class MissingInJob(Value, frozen=True):
    """The missing slots of a JobSlots."""

    pods: list[PodSeen]
    """Not started."""
    absent: list[MissingSlot]
    """Slots without a pod, at most `limit` of them."""
    more: int
    """Number of further slots without a pod."""


def missing_by_job(
    seen: GangSnapshot, limit: int | None = None, job_slots: Iterable[JobSlots] | None = None
) -> Iterator[MissingInJob]:
    """Missing slots per JobSlots; slots without a pod differ by index only, so at most `limit` of them are listed."""
    denials = dict(seen.denials)
    for slots in list_job_slots(seen) if job_slots is None else job_slots:
        lacking = slots.missing_count
        if not lacking:
            continue
        taken: set[int | None] = {pod.index for pod in slots.started_pods()}
        pods = _pending_pods(slots, taken)[:lacking]
        empty = lacking * slots.repeat - len(pods)
        shown = empty if limit is None else min(empty, limit)
        empty_slots = _slots(slots, taken | {pod.index for pod in pods}, shown, lacking)
        cause = _cause_without_pod(slots, denials) if shown else None
        absent = [_missing(slots, *slot, cause) for slot in empty_slots] if cause is not None else []
        yield MissingInJob(pods=pods, absent=absent, more=empty - shown)


def slot_of_pod(pod: PodSeen, cause: PendingCause) -> MissingSlot:
    """The slot of a pod that has not started."""
    return MissingSlot(
        replicated_job=pod.replicated_job,
        job_index=pod.job_index,
        index=pod.index,
        cause=cause,
        created_at=pod.created,
        pod=pod.name,
    )


def pending_cause(seen: GangSnapshot, pod: PodSeen) -> PendingCause:
    """Why a pod of the gang has not started."""
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


def _slots(slots: JobSlots, taken: set[int | None], many: int, each: int) -> list[tuple[int, int | None]]:
    """`many` slots without a pod as (job index, completion index); each Job has `each` of them."""
    found: list[tuple[int, int | None]] = []
    for number in range(slots.job_index, slots.job_index + slots.repeat):
        found += [(number, index) for index in _without_pod(slots, taken, min(each, many - len(found)))]
        if len(found) >= many:
            break
    return found


def _without_pod(slots: JobSlots, taken: set[int | None], many: int) -> list[int] | list[None]:
    """`many` indexes without a pod, lowest first: the order in which the Job controller creates pods."""
    if not slots.target.indexed:
        return [None] * many
    done = slots.completed_indexes
    free = (index for index in range(slots.index_count) if index not in taken and index not in done)
    return list(islice(free, many))


def _missing(slots: JobSlots, number: int, index: int | None, cause: PendingCause) -> MissingSlot:
    return MissingSlot(replicated_job=slots.target.name, job_index=number, index=index, cause=cause)


def _cause_without_pod(slots: JobSlots, denials: dict[str, str]) -> PendingCause:
    if slots.suspended:
        return PendingCause(reason=PendingReason.NOT_CREATED, message="the JobSet or its Job is suspended")
    if slots.job is None:
        return PendingCause(reason=PendingReason.NOT_CREATED, message="its Job does not exist yet")
    if slots.job.name in denials:
        return PendingCause(reason=PendingReason.QUOTA_DENIED, message=denials[slots.job.name])
    return PendingCause(reason=PendingReason.NOT_CREATED, message=NOT_CREATED_YET)


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
    made = map(_missing_by_reason, (seen,) * len(groups), groups, oldest, _oldest_counts(oldest))
    return tuple(
        sorted(
            made,
            key=lambda lack: (lack.oldest_created_at is None, lack.oldest_created_at or 0.0, -lack.count, lack.reason),
        )
    )


def _groups(seen: GangSnapshot, job_slots: Iterable[JobSlots] | None) -> Sequence[_Cause]:
    # Pods with the same cause mostly slots the object, so most comparisons are by identity.
    shared: dict[int, tuple[PendingCause, list[PodSeen]]] = {}
    found: dict[tuple[str, str], _Cause] = {}
    for gap in missing_by_job(seen, MAX_NAMED_SLOTS, job_slots):
        for pod in gap.pods:
            cause = pending_cause(seen, pod)
            same = shared.get(id(cause))
            if same is None:
                same = shared[id(cause)] = cause, []
            same[1].append(pod)
        if gap.absent:
            group = found.setdefault(_cause_key(gap.absent[0].cause), _Cause())
            group.causes.append(gap.absent[0].cause)
            group.more += gap.more
            group.absent += gap.absent
    for cause, pods in shared.values():
        group = found.setdefault(_cause_key(cause), _Cause())
        group.causes.append(cause)
        group.pods += pods
    return tuple(found.values())


def commands(found: Iterable[MissingByReason]) -> tuple[str, ...]:
    """Commands that show more, the most useful first."""
    return tuple(dict.fromkeys(lack.command for lack in found if lack.command))[:MAX_COMMANDS]


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
    pods = group.pods
    if len(pods) > MAX_NAMED_SLOTS:
        ages = [math.inf if pod.created is None else pod.created for pod in pods]
        last = sorted(ages)[MAX_NAMED_SLOTS - 1]
        pods = [pod for pod, age in zip(pods, ages, strict=True) if age <= last]
    there = [slot_of_pod(pod, pending_cause(seen, pod)) for pod in sorted(pods, key=_created)[:MAX_NAMED_SLOTS]]
    return (there + group.absent)[:MAX_NAMED_SLOTS]


def _created(pod: PodSeen) -> float:
    return math.inf if pod.created is None else pod.created


def _age(one: MissingSlot) -> float:
    return math.inf if one.created_at is None else one.created_at


def _oldest_counts(oldest: Sequence[Sequence[MissingSlot]]) -> list[int]:
    """How many of each group are among the oldest of all."""
    if sum(map(len, oldest)) <= MAX_NAMED_SLOTS or len(oldest) == 1:
        return [len(some) for some in oldest]
    ages = sorted((_age(one), number) for number, some in enumerate(oldest) for one in some)
    counts = [0] * len(oldest)
    for _, number in ages[:MAX_NAMED_SLOTS]:
        counts[number] += 1
    return counts


def _missing_by_reason(
    seen: GangSnapshot, group: _Cause, oldest: Sequence[MissingSlot], oldest_count: int
) -> MissingByReason:
    first = oldest[0]
    cause, many = first.cause, group.count
    if cause.reason in _PULLS:
        # The kubelet reports the error only during an attempt, between two attempts only the back-off.
        cause = max(group.causes, key=lambda it: len(it.message))
    return MissingByReason(
        reason=cause.reason.value,
        message=_POD.sub("pods", cause.message) if many > 1 and "pod" in cause.message else cause.message,
        count=many,
        slots=tuple(one.slot for one in oldest),
        oldest_count=oldest_count,
        oldest_created_at=first.created_at,
        command=_command(seen, cause, first),
    )


# --- What tells more -------------------------------------------------------------------------------------------------


def _describe(namespace: str, pod: str, cause: PendingCause) -> str:  # noqa: ARG001 - one signature for all
    return f"kubectl describe pod {pod} -n {namespace}"


def _events(namespace: str, pod: str, cause: PendingCause) -> str:  # noqa: ARG001 - one signature for all
    return f"kubectl get events -n {namespace} --field-selector involvedObject.name={pod}"


def _logs(namespace: str, pod: str, cause: PendingCause) -> str:
    return f"kubectl logs {pod} -c {re.split('[: ]', cause.message, maxsplit=1)[0]} -n {namespace}"


_OF_PODS: dict[PendingReason, Callable[[str, str, PendingCause], str]] = {
    PendingReason.NODE_PROVISIONING: _events,
    PendingReason.EARLIER_INIT: _logs,
    PendingReason.CRASH_LOOP: _logs,
}


def _command(seen: GangSnapshot, cause: PendingCause, one: MissingSlot) -> str:
    namespace = seen.jobset.namespace
    if one.pod:
        return _OF_PODS.get(cause.reason, _describe)(namespace, one.pod, cause)
    if cause.reason is PendingReason.QUOTA_DENIED and _QUOTA.search(cause.message):
        return f"kubectl describe resourcequota -n {namespace}"
    place = (one.replicated_job, one.job_index)
    job = next((it.name for it in seen.jobs if (it.replicated_job, it.job_index) == place), "")
    if job:
        return f"kubectl describe job {job} -n {namespace}"
    return f"kubectl describe jobset {seen.jobset.name} -n {namespace}"
