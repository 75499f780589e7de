"""What a gang lacks, grouped by reason: "37 pods: Unscheduled: 0/40 nodes are available", longest-waiting first (A9).

Thousands of pods that wait for the same thing say it in sentences that differ by a number, a pod's name or how far
the kubelet is in trying again. They make one group. Asked in every pass over a gang that waits.
"""

import math
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

from jobset_gate.count import Share
from jobset_gate.lack import Lack
from jobset_gate.missing import Missing, gaps, of_pod, stall_of
from jobset_gate.model import GangSeen, PodSeen, Stall, Why

SLOTS = 10
"""Slots named of each group, and of the whole gang the foremost (A7)."""
MOST_COMMANDS = 3

_POD = re.compile(r'\bpods? "[^"]*"')
_QUOTA = re.compile(r"exceeded quota: [^,]+")
_QUOTED = re.compile(r'"[^"]*"')
_NUMBER = re.compile(r"\d+")
_PULLS = frozenset({Why.IMAGE_PULL, Why.BARRIER_IMAGE_PULL})


@dataclass(slots=True)
class _Group:
    """The slots of one trouble."""

    stalls: list[Stall] = field(default_factory=list)
    pods: list[PodSeen] = field(default_factory=list)
    absent: list[Missing] = field(default_factory=list)
    """The first few of those without a pod."""
    more: int = 0

    @property
    def count(self) -> int:
        return len(self.pods) + len(self.absent) + self.more


def lacks(seen: GangSeen, parts: Iterable[Share] | None = None) -> tuple[Lack, ...]:
    """The missing slots of a gang, those that wait longest first. `parts`: its shares, where they are known already."""
    groups = _groups(seen, parts)
    oldest = [_oldest(seen, group) for group in groups]
    made = map(_lack, (seen,) * len(groups), groups, oldest, _foremost(oldest))
    return tuple(sorted(made, key=lambda lack: (lack.since is None, lack.since or 0.0, -lack.count, lack.why)))


def _groups(seen: GangSeen, parts: Iterable[Share] | None) -> Sequence[_Group]:
    # Pods that wait for the same thing mostly share their stall, so that comparing it is not needed.
    shared: dict[int, tuple[Stall, list[PodSeen]]] = {}
    found: dict[tuple[str, str], _Group] = {}
    for gap in gaps(seen, SLOTS, parts):
        for pod in gap.pods:
            stall = stall_of(seen, pod)
            same = shared.get(id(stall))
            if same is None:
                same = shared[id(stall)] = stall, []
            same[1].append(pod)
        if gap.absent:
            group = found.setdefault(_trouble(gap.absent[0].stall), _Group())
            group.stalls.append(gap.absent[0].stall)
            group.more += gap.more
            group.absent += gap.absent
    for stall, pods in shared.values():
        group = found.setdefault(_trouble(stall), _Group())
        group.stalls.append(stall)
        group.pods += pods
    return tuple(found.values())


def commands(found: Iterable[Lack]) -> tuple[str, ...]:
    """What tells more of these, the most telling first."""
    return tuple(dict.fromkeys(lack.command for lack in found if lack.command))[:MOST_COMMANDS]


@lru_cache(maxsize=4096)
def _trouble(stall: Stall) -> tuple[str, str]:
    return stall.why.value, alike(stall)


def alike(stall: Stall) -> str:
    """What stalls of one class have in common that are one and the same trouble."""
    detail = stall.detail
    if stall.why is Why.QUOTA_DENIED:
        quota = _QUOTA.search(detail)
        return quota[0] if quota else _POD.sub("", detail)
    if stall.why in _PULLS:
        container, image = detail.partition(":")[0], _QUOTED.search(detail)
        return f"{container} {image[0]}" if image else detail
    return unnumbered(_QUOTED.sub("", detail) if stall.why is Why.STARTING else detail)


def unnumbered(text: str) -> str:
    """Without what differs from pod to pod while the trouble is the same."""
    return _NUMBER.sub("#", text)


def _oldest(seen: GangSeen, group: _Group) -> list[Missing]:
    """The few that wait longest; where there is no pod yet, in the order of the spec."""
    pods = group.pods
    if len(pods) > SLOTS:
        ages = [math.inf if pod.created is None else pod.created for pod in pods]
        last = sorted(ages)[SLOTS - 1]
        pods = [pod for pod, age in zip(pods, ages, strict=True) if age <= last]
    there = [of_pod(pod, stall_of(seen, pod)) for pod in sorted(pods, key=_created)[:SLOTS]]
    return (there + group.absent)[:SLOTS]


def _created(pod: PodSeen) -> float:
    return math.inf if pod.created is None else pod.created


def _age(one: Missing) -> float:
    return math.inf if one.since is None else one.since


def _foremost(oldest: Sequence[Sequence[Missing]]) -> list[int]:
    """How many of each group are among those that wait longest of all."""
    if sum(map(len, oldest)) <= SLOTS or len(oldest) == 1:
        return [len(some) for some in oldest]
    ages = sorted((_age(one), number) for number, some in enumerate(oldest) for one in some)
    counts = [0] * len(oldest)
    for _, number in ages[:SLOTS]:
        counts[number] += 1
    return counts


def _lack(seen: GangSeen, group: _Group, oldest: Sequence[Missing], foremost: int) -> Lack:
    first = oldest[0]
    stall, many = first.stall, group.count
    if stall.why in _PULLS:
        # The kubelet says why only while it tries: between two tries it says that it waits.
        stall = max(group.stalls, key=lambda it: len(it.detail))
    return Lack(
        why=stall.why.value,
        detail=_POD.sub("pods", stall.detail) if many > 1 and "pod" in stall.detail else stall.detail,
        count=many,
        slots=tuple(one.slot for one in oldest),
        foremost=foremost,
        since=first.since,
        command=_command(seen, stall, first),
    )


# --- What tells more -------------------------------------------------------------------------------------------------


def _describe(namespace: str, pod: str, stall: Stall) -> str:  # noqa: ARG001 - one signature for all
    return f"kubectl describe pod {pod} -n {namespace}"


def _events(namespace: str, pod: str, stall: Stall) -> str:  # noqa: ARG001 - one signature for all
    return f"kubectl get events -n {namespace} --field-selector involvedObject.name={pod}"


def _logs(namespace: str, pod: str, stall: Stall) -> str:
    return f"kubectl logs {pod} -c {re.split('[: ]', stall.detail, maxsplit=1)[0]} -n {namespace}"


_OF_PODS: dict[Why, Callable[[str, str, Stall], str]] = {
    Why.NODE_PROVISIONING: _events,
    Why.EARLIER_INIT: _logs,
    Why.CRASH_LOOP: _logs,
}


def _command(seen: GangSeen, stall: Stall, one: Missing) -> str:
    namespace = seen.jobset.namespace
    if one.pod:
        return _OF_PODS.get(stall.why, _describe)(namespace, one.pod, stall)
    if stall.why is Why.QUOTA_DENIED and _QUOTA.search(stall.detail):
        return f"kubectl describe resourcequota -n {namespace}"
    place = (one.replicated_job, one.job_index)
    job = next((it.name for it in seen.jobs if (it.replicated_job, it.job_index) == place), "")
    if job:
        return f"kubectl describe job {job} -n {namespace}"
    return f"kubectl describe jobset {seen.jobset.name} -n {namespace}"
