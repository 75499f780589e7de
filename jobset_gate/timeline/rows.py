"""Pods as rows that fit on a page: each its own while they are few, else bands of those that started about together."""

from collections.abc import Sequence
from itertools import pairwise

from jobset_gate.barrier.model import Value
from jobset_gate.timeline.model import PodTimeline, Timeline
from jobset_gate.timeline.summary import StepSummary, step_summary

MOST_PODS = 60
"""More than these are drawn as bands."""
BANDS = 24
"""About so many in all."""
MOST_OF_ONE = 10
"""Bands of one replicatedJob."""
MOST_JOBS = 40
"""More replicatedJobs than these are drawn as one."""
SLOWEST = 5
"""Pods that are shown each for itself below the bands."""


class TimelineRow(Value, frozen=True):
    """One line of a picture."""

    label: str
    count: int
    """Pods that it stands for."""
    pod: PodTimeline
    """Of a band: when half of its pods had got there."""
    sums: tuple[StepSummary, ...] = ()
    """Of a band: the steps of its pods."""
    slow: bool = False
    """One of those that came last: it is in a band, too."""

    @property
    def is_band(self) -> bool:
        """It stands for several pods."""
        return self.sums != ()


def rows(timeline: Timeline, most: int = MOST_PODS) -> tuple[TimelineRow, ...]:
    """In the order of the spec: by replicatedJob, Job and index; of bands the first to start come first."""
    pods = timeline.pods
    if len(pods) <= most:
        return tuple(TimelineRow(label=pod.slot, count=1, pod=pod) for pod in pods)
    found = [row for name, some in _jobs(pods) for row in _bands(name, some, len(pods))]
    slow = sorted(pods, key=arrival_order)[-SLOWEST:]
    return (*found, *(TimelineRow(label=pod.slot, count=1, pod=pod, slow=True) for pod in slow))


def _median_pod(job: str, label: str, pods: Sequence[PodTimeline], sums: Sequence[StepSummary]) -> PodTimeline:
    """One that stands for all: it has reached what at least half of them have, when half of them had."""
    times = {it.step: _half([pod.times.get(it.step) for pod in pods], it.known + it.pending) for it in sums}
    return PodTimeline(
        name=label,
        replicated_job=job,
        path=pods[0].path,
        times={step: at for step, at in times.items() if at is not None},
        gone=frozenset(it.step for it in sums if not it.known and it.lost > it.pending),
        alive=2 * sum(pod.alive for pod in pods) >= len(pods),
        gave_up=_half([pod.gave_up for pod in pods], len(pods)),
        ended=_half([pod.ended for pod in pods], len(pods)),
    )


def _half(moments: Sequence[float | None], of: int) -> float | None:
    """The time by which at least half of so many had come, if so many have; None stands for one that has not."""
    found = sorted(at for at in moments if at is not None)
    place = (of + 1) // 2 - 1
    return found[place] if 0 <= place < len(found) else None


def _jobs(pods: Sequence[PodTimeline]) -> list[tuple[str, list[PodTimeline]]]:
    by_name: dict[str, list[PodTimeline]] = {}
    for pod in pods:
        by_name.setdefault(pod.replicated_job, []).append(pod)
    return list(by_name.items()) if len(by_name) <= MOST_JOBS else [("all", list(pods))]


def _bands(name: str, pods: Sequence[PodTimeline], of: int) -> list[TimelineRow]:
    parts = min(MOST_OF_ONE, len(pods), max(1, BANDS * len(pods) // of))
    ordered = sorted(pods, key=arrival_order)
    cuts = [len(ordered) * number // parts for number in range(parts + 1)]
    found = []
    for number, (low, high) in enumerate(pairwise(cuts)):
        some = ordered[low:high]
        label = name if parts == 1 else f"{name} {100 * number // parts}-{100 * (number + 1) // parts}%"
        sums = tuple(step_summary(some, step) for step in some[0].path.steps)
        way = _median_pod(name, label, some, sums)
        found.append(TimelineRow(label=label, count=len(some), pod=way, sums=sums))
    return found


def arrival_order(pod: PodTimeline) -> tuple[float, ...]:
    """Who came to the gate first; then who came nearest to it."""
    never = float("inf")
    return (
        pod.times.get(pod.path.arrival, never),
        *(pod.times.get(step, never) for step in reversed(pod.path.transition_steps)),
    )
