"""What a gang lacks, grouped by reason: "37 pods: Unscheduled: 0/40 nodes are available", longest-waiting first (A9).

Thousands of pods that wait for the same thing say it in sentences that differ by a number, a pod's name or how far
the kubelet is in trying again. They make one group. Asked in every pass over a gang that waits.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from jobset_gate.barrier.count import JobSlots
from jobset_gate.barrier.missing_model import MissingByReason
from jobset_gate.barrier.missing_slots import MissingSlot, missing_by_job, pending_cause, slot_of_pod
from jobset_gate.barrier.model import GangSnapshot, PendingCause, PendingReason, PodSeen

MAX_NAMED_SLOTS = 10
"""Slots named of each group, and of the whole gang the foremost (A7)."""
MAX_COMMANDS = 3

_POD = re.compile(r'\bpods? "[^"]*"')
_QUOTA = re.compile(r"exceeded quota: [^,]+")
_QUOTED = re.compile(r'"[^"]*"')
_NUMBER = re.compile(r"\d+")
_PULLS = frozenset({PendingReason.IMAGE_PULL, PendingReason.BARRIER_IMAGE_PULL})


@dataclass(slots=True)
class _Cause:
    """The slots of one trouble."""

    stalls: list[PendingCause] = field(default_factory=list)
    pods: list[PodSeen] = field(default_factory=list)
    absent: list[MissingSlot] = field(default_factory=list)
    """The first few of those without a pod."""
    more: int = 0

    @property
    def count(self) -> int:
        return len(self.pods) + len(self.absent) + self.more


def missing_by_reason(seen: GangSnapshot, job_slots: Iterable[JobSlots] | None = None) -> tuple[MissingByReason, ...]:
    """The missing slots of a gang, those that wait longest first. `parts`: its shares, where they are known already."""
    groups = _groups(seen, job_slots)
    oldest = [_oldest(seen, group) for group in groups]
    made = map(_missing_by_reason, (seen,) * len(groups), groups, oldest, _oldest_counts(oldest))
    return tuple(
        sorted(
            made,
            key=lambda lack: (lack.oldest_created_at is None, lack.oldest_created_at or 0.0, -lack.count, lack.reason),
        )
    )


def _groups(seen: GangSnapshot, parts: Iterable[JobSlots] | None) -> Sequence[_Cause]:
    # Pods that wait for the same thing mostly share their stall, so that comparing it is not needed.
    shared: dict[int, tuple[PendingCause, list[PodSeen]]] = {}
    found: dict[tuple[str, str], _Cause] = {}
    for gap in missing_by_job(seen, MAX_NAMED_SLOTS, parts):
        for pod in gap.pods:
            stall = pending_cause(seen, pod)
            same = shared.get(id(stall))
            if same is None:
                same = shared[id(stall)] = stall, []
            same[1].append(pod)
        if gap.absent:
            group = found.setdefault(_cause_key(gap.absent[0].cause), _Cause())
            group.stalls.append(gap.absent[0].cause)
            group.more += gap.more
            group.absent += gap.absent
    for stall, pods in shared.values():
        group = found.setdefault(_cause_key(stall), _Cause())
        group.stalls.append(stall)
        group.pods += pods
    return tuple(found.values())


def commands(found: Iterable[MissingByReason]) -> tuple[str, ...]:
    """What tells more of these, the most telling first."""
    return tuple(dict.fromkeys(lack.command for lack in found if lack.command))[:MAX_COMMANDS]


@lru_cache(maxsize=4096)
def _cause_key(stall: PendingCause) -> tuple[str, str]:
    return stall.reason.value, cause_key(stall)


def cause_key(stall: PendingCause) -> str:
    """What stalls of one class have in common that are one and the same trouble."""
    detail = stall.message
    if stall.reason is PendingReason.QUOTA_DENIED:
        quota = _QUOTA.search(detail)
        return quota[0] if quota else _POD.sub("", detail)
    if stall.reason in _PULLS:
        container, image = detail.partition(":")[0], _QUOTED.search(detail)
        return f"{container} {image[0]}" if image else detail
    return without_numbers(_QUOTED.sub("", detail) if stall.reason is PendingReason.STARTING else detail)


def without_numbers(text: str) -> str:
    """Without what differs from pod to pod while the trouble is the same."""
    return _NUMBER.sub("#", text)


def _oldest(seen: GangSnapshot, group: _Cause) -> list[MissingSlot]:
    """The few that wait longest; where there is no pod yet, in the order of the spec."""
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
    """How many of each group are among those that wait longest of all."""
    if sum(map(len, oldest)) <= MAX_NAMED_SLOTS or len(oldest) == 1:
        return [len(some) for some in oldest]
    ages = sorted((_age(one), number) for number, some in enumerate(oldest) for one in some)
    counts = [0] * len(oldest)
    for _, number in ages[:MAX_NAMED_SLOTS]:
        counts[number] += 1
    return counts


def _missing_by_reason(
    seen: GangSnapshot, group: _Cause, oldest: Sequence[MissingSlot], foremost: int
) -> MissingByReason:
    first = oldest[0]
    stall, many = first.cause, group.count
    if stall.reason in _PULLS:
        # The kubelet says why only while it tries: between two tries it says that it waits.
        stall = max(group.stalls, key=lambda it: len(it.message))
    return MissingByReason(
        reason=stall.reason.value,
        message=_POD.sub("pods", stall.message) if many > 1 and "pod" in stall.message else stall.message,
        count=many,
        slots=tuple(one.slot for one in oldest),
        oldest_count=foremost,
        oldest_created_at=first.created_at,
        command=_command(seen, stall, first),
    )


# --- What tells more -------------------------------------------------------------------------------------------------


def _describe(namespace: str, pod: str, stall: PendingCause) -> str:  # noqa: ARG001 - one signature for all
    return f"kubectl describe pod {pod} -n {namespace}"


def _events(namespace: str, pod: str, stall: PendingCause) -> str:  # noqa: ARG001 - one signature for all
    return f"kubectl get events -n {namespace} --field-selector involvedObject.name={pod}"


def _logs(namespace: str, pod: str, stall: PendingCause) -> str:
    return f"kubectl logs {pod} -c {re.split('[: ]', stall.message, maxsplit=1)[0]} -n {namespace}"


_OF_PODS: dict[PendingReason, Callable[[str, str, PendingCause], str]] = {
    PendingReason.NODE_PROVISIONING: _events,
    PendingReason.EARLIER_INIT: _logs,
    PendingReason.CRASH_LOOP: _logs,
}


def _command(seen: GangSnapshot, stall: PendingCause, one: MissingSlot) -> str:
    namespace = seen.jobset.namespace
    if one.pod:
        return _OF_PODS.get(stall.reason, _describe)(namespace, one.pod, stall)
    if stall.reason is PendingReason.QUOTA_DENIED and _QUOTA.search(stall.message):
        return f"kubectl describe resourcequota -n {namespace}"
    place = (one.replicated_job, one.job_index)
    job = next((it.name for it in seen.jobs if (it.replicated_job, it.job_index) == place), "")
    if job:
        return f"kubectl describe job {job} -n {namespace}"
    return f"kubectl describe jobset {seen.jobset.name} -n {namespace}"
