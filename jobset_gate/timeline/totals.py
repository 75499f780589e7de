"""What a timeline comes to: first, median and last of each step, the skew, and the seconds that devices stood idle."""

from collections.abc import Iterable, Mapping, Sequence

from jobset_gate.barrier.model import Value
from jobset_gate.timeline.model import Placement, PodTimeline, Step, Timeline

Prices = Mapping[str, float]
"""Of one device for one hour, by resource name; under "" that of all others."""

HOUR = 3600


class StepSummary(Value, frozen=True):
    """How one step went."""

    step: Step
    known: int
    lost: int
    """Pods that have reached it at a time that nobody knows any more."""
    pending: int
    first: float | None = None
    median: float | None = None
    last: float | None = None

    @property
    def spread(self) -> float | None:
        """Seconds from the first to the last of those that are known."""
        return None if self.first is None or self.last is None else self.last - self.first


class IdleDevices(Value, frozen=True):
    """Devices of one kind that stood still while their pods were held."""

    resource: str
    devices: int
    """Of all pods that were or are held."""
    seconds: float
    """Device-seconds."""
    unknown: int = 0
    """Pods whose time at the gate is not known; it is not in `seconds`."""
    cost: float | None = None


def step_summaries(timeline: Timeline) -> tuple[StepSummary, ...]:
    """Of each step, in order."""
    return tuple(step_summary(timeline.pods, step) for step in timeline.path.steps)


def step_summary(pods: Sequence[PodTimeline], step: Step) -> StepSummary:
    """Median: when half of them (those of which it is known) had got there."""
    found = sorted(pod.times[step] for pod in pods if step in pod.times)
    lost = sum(step not in pod.times and step in pod.unknown_steps for pod in pods)
    return StepSummary(
        step=step,
        known=len(found),
        lost=lost,
        pending=len(pods) - len(found) - lost,
        first=found[0] if found else None,
        median=found[(len(found) - 1) // 2] if found else None,
        last=found[-1] if found else None,
    )


def start_skew(timeline: Timeline) -> StepSummary:
    """From the first to the last main container's start."""
    return step_summary(timeline.pods, Step.RUNNING)


def idle_devices(timeline: Timeline, prices: Prices | None = None) -> tuple[IdleDevices, ...]:
    """By resource name. Those of pods that never started are idle, too, but not the gate's doing: they do not count."""
    devices: dict[str, int] = {}
    seconds: dict[str, float] = {}
    unknown: dict[str, int] = {}
    for pod in (*timeline.pods, *timeline.replacements):
        if not pod.devices or not pod.reached(timeline.path.arrival):
            continue
        held = (
            pod.held_seconds(timeline.now) if timeline.placing is None else _alone(timeline.placing, pod, timeline.now)
        )
        for resource, many in pod.devices:
            devices[resource] = devices.get(resource, 0) + many
            seconds[resource] = seconds.get(resource, 0.0) + many * (held or 0.0)
            unknown[resource] = unknown.get(resource, 0) + (held is None)
    return tuple(
        IdleDevices(
            resource=resource,
            devices=devices[resource],
            seconds=seconds[resource],
            unknown=unknown[resource],
            cost=_cost(resource, seconds[resource], prices or {}),
        )
        for resource in sorted(devices)
    )


def _alone(group: Placement, pod: PodTimeline, now: float) -> float | None:
    """Seconds for which it had a node while its group could do nothing yet, up to now; None if that is not known."""
    start = pod.times.get(Step.SCHEDULED)
    if start is None or (group.works and group.working is None) or (pod.stopped_at is None and not pod.alive):
        return None
    ends = [it for it in (group.working, pod.stopped_at) if it is not None]
    return max(0.0, min(ends, default=now) - start)


def total_cost(costs: Iterable[IdleDevices]) -> float | None:
    """What all of them cost; None if one has no price, or there is none."""
    found = [it.cost for it in costs]
    known = [it for it in found if it is not None]
    return sum(known) if known and len(known) == len(found) else None


def _cost(resource: str, seconds: float, prices: Prices) -> float | None:
    price = prices.get(resource, prices.get(""))
    return None if price is None else seconds / HOUR * price
