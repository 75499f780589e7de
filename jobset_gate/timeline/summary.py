"""What a timeline comes to, in numbers and in sentences: steps, skew, and the seconds that devices stood idle."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from jobset_gate import names
from jobset_gate.barrier.model import Value
from jobset_gate.explain.text import format_duration, format_pod_count, format_time
from jobset_gate.timeline.model import Placement, PodTimeline, Step, Timeline

Prices = Mapping[str, float]
"""Of one device for one hour, by resource name; under "" that of all others."""

_NO_PRICES: Prices = MappingProxyType({})

HOUR = 3600
STEP_TEXT = {step: str(step) for step in Step} | {Step.PULLED: "image pulled", Step.MAIN_PULLED: "main images pulled"}


class StepSummary(Value, frozen=True):
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


def step_summary(pods: Sequence[PodTimeline], step: Step) -> StepSummary:
    """Median: when half of the pods whose time is known had reached it."""
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


def idle_devices(timeline: Timeline, prices: Prices = _NO_PRICES) -> tuple[IdleDevices, ...]:
    """By resource name. Those of pods that never started are idle, too, but not the gate's doing: they do not count."""
    devices, unknown, seconds = Counter[str](), Counter[str](), dict[str, float]()
    for pod in (*timeline.pods, *timeline.replacements):
        if not pod.devices or not pod.reached(timeline.path.arrival):
            continue
        held = (
            pod.held_seconds(timeline.now) if timeline.placing is None else _alone(timeline.placing, pod, timeline.now)
        )
        for resource, many in pod.devices:
            devices[resource] += many
            unknown[resource] += held is None
            seconds[resource] = seconds.get(resource, 0.0) + many * (held or 0.0)
    return tuple(
        IdleDevices(
            resource=name,
            devices=devices[name],
            seconds=idle,
            unknown=unknown[name],
            cost=None if (price := prices.get(name, prices.get(""))) is None else idle / HOUR * price,
        )
        for name, idle in sorted(seconds.items())
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


# --- In sentences ----------------------------------------------------------------------------------------------------


def headline(it: Timeline) -> str:
    """`JobSet team/train: 4/4 pods started; the gate was opened after 42s (AllPodsStarted)`."""
    if it.placing is not None:
        return f"{it.kind} {it.namespace}/{it.name}: {_placed(it, it.placing)}"
    return f"{it.kind} {it.namespace}/{it.name}: {it.started}/{it.expected} pods started; {_gate(it)}"


def sentences(it: Timeline, idle: Sequence[IdleDevices]) -> Iterator[str]:
    """Start, spread, skew, what stood idle meanwhile and what it cost."""
    if it.decision:
        yield f"what was decided: {it.decision}"
    if it.origin is None:
        yield from _without_pods(it)
        return
    yield f"first pod made {format_time(it.origin)}"
    if it.placing is not None:
        yield from _gathering(it, it.placing, it.origin)
    arrival = "barriers: first to last start" if it.placing is None else "placement skew, first to last bound:"
    came, mains = step_summary(it.pods, it.path.arrival), step_summary(it.pods, Step.RUNNING)
    for steps, text in ((came, arrival), (mains, "start skew, first to last main container:")):
        if steps.known > 1:
            yield f"{text} {_spread(steps)}"
    if it.placing is None and mains.last is not None and it.opened is not None:
        yield f"gate opened to last main container: {format_duration(mains.last - it.opened)}"
    where = "held at the gate" if it.placing is None else f"bound before {format_pod_count(it.placing.minimum)} ran"
    yield from (_idle(one, where) for one in idle)
    whole = total_cost(idle)
    if len(idle) > 1 and whole is not None:
        yield f"together {money(whole)}"


def offset(moment: float, origin: float) -> str:
    """`+42s`."""
    seconds = round(moment - origin)
    return f"+{format_duration(seconds)}" if seconds >= 0 else f"-{format_duration(-seconds)}"


def pod_text(pod: PodTimeline, now: float, origin: float) -> str:
    """`created +0s, scheduled +1s, started +4s, released +9s, running not yet`."""
    lost = pod.unknown_steps
    parts = []
    for step in pod.path.steps:
        if step in pod.times:
            parts.append(f"{STEP_TEXT[step]} {offset(pod.times[step], origin)}")
        elif step in lost and step not in (Step.PULLED, Step.MAIN_PULLED):
            parts.append(f"{STEP_TEXT[step]} at a time not known")
    if pod.gave_up is not None:
        parts.append(f"gave up {offset(pod.gave_up, origin)}")
    held = pod.held_seconds(now)
    if held is not None and pod.reached(pod.path.held[0]):
        parts.append(f"held {format_duration(held)}")
    return ", ".join(parts)


def _gate(it: Timeline) -> str:
    if it.verdict == names.REASON_TIMED_OUT and it.opened is None:
        if it.timed_out is None or it.waiting_since is None:
            return "it timed out"
        return f"it timed out {format_duration(it.timed_out - it.waiting_since)} after its first pod started"
    if it.verdict == names.REASON_INDEX_FAILED and it.opened is None:
        return "it was ended, since an index had failed for good"
    if it.opened is not None and it.origin is not None:
        return (
            f"the gate was opened {format_duration(it.opened - it.origin)} after its first pod was made ({it.verdict})"
        )
    if it.verdict:
        return f"the gate was opened ({it.verdict}); when is not known"
    return "the gate is closed" if not it.finished else "it is finished"


def _without_pods(it: Timeline) -> Iterator[str]:
    """What the workload and its ConfigMap still know."""
    if it.placing is not None:
        yield "no pod of it is there: nothing is known of its start"
        return
    if it.waiting_since is None:
        yield "no pod of this attempt is there: nothing is known of its start"
        return
    ended = "" if it.timed_out is None else f"; timed out {format_time(it.timed_out)}"
    yield f"first pod started {format_time(it.waiting_since)}{ended}"
    yield "no pod of this attempt is there any more"


# --- A pod group -----------------------------------------------------------------------------------------------------


def _placed(it: Timeline, group: Placement) -> str:
    bound = sum(pod.alive and pod.reached(Step.SCHEDULED) for pod in (*it.pods, *it.replacements))
    enough = f"{bound} pods are bound, its minimum is {group.minimum}"
    text = f"{bound}/{group.minimum} pods are bound" if bound <= group.minimum else enough
    if it.opened is None:
        return f"{text}; it is not opened" if not group.generation else f"{text}; when it was opened is not known"
    after = ""
    if it.origin is not None:
        order = "after" if it.opened >= it.origin else "before"
        after = f" {format_duration(abs(it.opened - it.origin))} {order} its first pod was made"
    return f"{text}; it was opened{after} ({it.verdict})"


def _gathering(it: Timeline, group: Placement, origin: float) -> Iterator[str]:
    many = format_pod_count(group.minimum)
    if group.gathered is not None:
        yield f"gathered, {many} there: {offset(group.gathered, origin)}"
    elif it.opened is not None:
        yield "when it was gathered is not known any more: pods have been replaced since"
    if group.satisfied is not None:
        yield f"its minimum of {many} bound: {offset(group.satisfied, origin)}"


# --- Idle devices ----------------------------------------------------------------------------------------------------


def money(amount: float) -> str:
    """In the currency of the price."""
    return f"{amount:.2f}" if amount >= 0.005 or amount == 0 else f"{amount:.2g}"


def _spread(it: StepSummary) -> str:
    text = format_duration(it.spread or 0)
    if it.pending:
        text += f" so far ({format_pod_count(it.pending)} still to come)"
    if it.lost:
        text += f" or more (of {format_pod_count(it.lost)} not known)"
    return text


def _idle(it: IdleDevices, where: str) -> str:
    text = f"{it.devices} {it.resource} {where}: {it.seconds:.0f} device-seconds"
    if it.unknown:
        text += f" or more (of {format_pod_count(it.unknown)} not known)"
    return text + ("" if it.cost is None else f", cost {money(it.cost)}")
