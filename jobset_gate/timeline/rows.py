"""Pods as rows that fit on a page: each its own while they are few, else bands of those that started about together."""

from collections.abc import Sequence
from itertools import pairwise

import msgspec

from jobset_gate.barrier.model import Value
from jobset_gate.timeline.model import PodTimeline, Step, Timeline
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


def median_pod(pods: Sequence[PodTimeline]) -> PodTimeline:
    """One that stands for all: it has reached what at least half of them have, when half of them had."""
    reached = {step: _half(step, pods) for step in pods[0].path.steps}
    times = {step: at for step, at in reached.items() if isinstance(at, float)}
    gone = frozenset(step for step, at in reached.items() if at is True)
    quits = sorted(pod.gave_up for pod in pods if pod.gave_up is not None)
    ends = sorted(pod.ended for pod in pods if pod.ended is not None)
    return PodTimeline(
        name="",
        path=pods[0].path,
        times=times,
        gone=gone,
        alive=2 * sum(pod.alive for pod in pods) >= len(pods),
        gave_up=_middle(quits, len(pods)),
        ended=_middle(ends, len(pods)),
    )


def _half(step: Step, pods: Sequence[PodTimeline]) -> float | bool:
    """When half of the pods whose state is known had reached it; True: reached at an unknown time."""
    summary = step_summary(pods, step)
    if summary.known:
        found = sorted(pod.times[step] for pod in pods if step in pod.times)
        middle = _middle(found, summary.known + summary.pending)
        return False if middle is None else float(middle)
    return summary.lost > summary.pending


def _middle(found: Sequence[float], of: int) -> float | None:
    """The time by which at least half had come, if so many have."""
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
        way = msgspec.structs.replace(median_pod(some), replicated_job=name, name=label)
        found.append(
            TimelineRow(
                label=label, count=len(some), pod=way, sums=tuple(step_summary(some, step) for step in way.path.steps)
            )
        )
    return found


def arrival_order(pod: PodTimeline) -> tuple[float, ...]:
    """Who came to the gate first; then who came nearest to it."""
    never = float("inf")
    return (
        pod.times.get(pod.path.arrival, never),
        *(pod.times.get(step, never) for step in reversed(pod.path.transition_steps)),
    )
