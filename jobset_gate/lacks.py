"""What a gang lacks, grouped by reason: "37 pods: Unscheduled: 0/40 nodes are available", longest-waiting first (A9).

Thousands of pods that wait for the same thing say it in sentences that differ by a number, a pod's name or how far
the kubelet is in trying again. They make one group.
"""

import re
from collections.abc import Callable, Iterable, Iterator

from jobset_gate import count
from jobset_gate.explained import Lack
from jobset_gate.missing import missing
from jobset_gate.model import GangSeen, Missing, PodSeen, Stall, Why

SLOTS = 5
"""Slots named of each group."""

_POD = re.compile(r'\bpods? "[^"]*"')
_QUOTA = re.compile(r"exceeded quota: [^,]+")
_QUOTED = re.compile(r'"[^"]*"')
_NUMBER = re.compile(r"\d+")
_PULLS = frozenset({Why.IMAGE_PULL, Why.BARRIER_IMAGE_PULL})
_Place = tuple[str, int, int | None]


def lacks(seen: GangSeen) -> tuple[Lack, ...]:
    """The missing slots of a gang, those that wait longest first."""
    groups: dict[tuple[str, str], list[Missing]] = {}
    keys: dict[Stall, tuple[str, str]] = {}
    for one in missing(seen):
        key = keys.get(one.stall)
        if key is None:
            key = keys[one.stall] = (one.stall.why, alike(one.stall))
        groups.setdefault(key, []).append(one)
    pods = _Pods(seen)
    made = [_lack(seen, _by_age(group), pods) for group in groups.values()]
    return tuple(sorted(made, key=lambda lack: (lack.since is None, lack.since or 0.0, -lack.count, lack.why)))


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


def _by_age(group: list[Missing]) -> list[Missing]:
    """Longest-waiting first; where there is no pod yet, in the order of the spec."""
    return sorted(group, key=lambda one: (one.since is None, one.since or 0.0))


def _lack(seen: GangSeen, group: list[Missing], pods: "_Pods") -> Lack:
    first = group[0]
    stall = first.stall
    if stall.why in _PULLS:
        # The kubelet says why only while it tries: between two tries it says that it waits.
        stall = max((one.stall for one in group), key=lambda one: len(one.detail))
    return Lack(
        why=stall.why.value,
        detail=_POD.sub("pods", stall.detail) if len(group) > 1 else stall.detail,
        count=len(group),
        slots=tuple(one.slot for one in group[:SLOTS]),
        since=first.since,
        command=_command(seen, stall, first, pods.of(first)),
    )


class _Pods:
    """Which pod stands in a slot without having started."""

    def __init__(self, seen: GangSeen) -> None:
        self._seen = seen
        self._found: dict[tuple[_Place, float | None], PodSeen] | None = None

    def of(self, one: Missing) -> PodSeen | None:
        if self._found is None:
            self._found = dict(_places(self._seen))
        return self._found.get(((one.replicated_job, one.job_index, one.index), one.since))


def _places(seen: GangSeen) -> Iterator[tuple[tuple[_Place, float | None], PodSeen]]:
    pods: Iterable[PodSeen] = (pod for pod in count.members(seen) if not pod.counts(seen.announced))
    for pod in sorted(pods, key=lambda pod: (pod.alive, pod.name)):  # one that is alive is the one to look at
        yield ((pod.replicated_job, pod.job_index, pod.index), pod.created), pod


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


def _command(seen: GangSeen, stall: Stall, one: Missing, pod: PodSeen | None) -> str:
    namespace = seen.jobset.namespace
    if pod is not None:
        return _OF_PODS.get(stall.why, _describe)(namespace, pod.name, stall)
    if stall.why is Why.QUOTA_DENIED and _QUOTA.search(stall.detail):
        return f"kubectl describe resourcequota -n {namespace}"
    place = (one.replicated_job, one.job_index)
    job = next((it.name for it in seen.jobs if (it.replicated_job, it.job_index) == place), "")
    if job:
        return f"kubectl describe job {job} -n {namespace}"
    return f"kubectl describe jobset {seen.jobset.name} -n {namespace}"
