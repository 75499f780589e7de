"""Pods of one gang as the page lists them: stage, node, age and what each waits for. Pure."""

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from controllers.statuspage.rows import Severity
from jobset_gate.barrier.model import PendingCause, Value
from jobset_gate.timeline.model import PodTimeline, Step

MAX_PODS: Final = 300
"""Pods of one page, those that need attention first."""

_STAGES: Final = (
    (Step.RUNNING, "Running", Severity.GOOD),
    (Step.RELEASED, "Released", Severity.GOOD),
    (Step.STARTED, "Started", Severity.GOOD),
)
"""Of the pods of a JobSet, the furthest first."""
_GROUP_STAGES: Final = (
    (Step.RUNNING, "Running", Severity.GOOD),
    (Step.SCHEDULED, "Bound", Severity.GOOD),
    (Step.OPENED, "Unscheduled", Severity.WAIT),
)
"""Of the pods of a pod group."""


class PodRow(Value, frozen=True):
    name: str
    slot: str
    part: str
    """Its replicatedJob, or what made it in a pod group."""
    node: str
    stage: str
    """How far it is, or the reason for which it has not started."""
    tone: Severity
    message: str
    times: tuple[tuple[str, float], ...]
    """When it reached each step."""

    @property
    def created(self) -> float | None:
        return next((moment for step, moment in self.times if step == Step.CREATED), None)


class PodList(Value, frozen=True):
    rows: tuple[PodRow, ...] = ()
    count: int = 0
    """All pods, shown or not."""

    def parts(self) -> list[tuple[str, str, list[PodRow]]]:
        """Name, stages in words and rows of each part, in the order of the spec."""
        found: dict[str, list[PodRow]] = {}
        for row in self.rows:
            found.setdefault(row.part, []).append(row)
        return [(name, _stages(rows), rows) for name, rows in found.items()]


def pod_list(pods: Iterable[PodTimeline], pending: Mapping[str, PendingCause]) -> PodList:
    """`pending` by name of the pod. Those that have not started come first, the oldest of them first."""
    rows = [_row(pod, pending.get(pod.name)) for pod in pods]
    turn = {name: number for number, name in enumerate(dict.fromkeys(row.part for row in rows))}
    shown = sorted(rows, key=lambda it: (it.tone, it.created or 0.0))[:MAX_PODS]
    shown.sort(key=lambda it: turn[it.part])
    return PodList(rows=tuple(shown), count=len(rows))


def _row(pod: PodTimeline, cause: PendingCause | None) -> PodRow:
    stage, tone = _stage(pod, cause)
    return PodRow(
        name=pod.name,
        slot=pod.slot,
        part=pod.replicated_job,
        node=pod.node,
        stage=stage,
        tone=tone,
        message="" if cause is None or stage != cause.reason else cause.message,
        times=tuple((str(step), pod.times[step]) for step in pod.path.steps if step in pod.times),
    )


def _stage(pod: PodTimeline, cause: PendingCause | None) -> tuple[str, Severity]:
    if pod.phase == "Failed":
        return ("TimedOut" if pod.gave_up is not None else "Failed"), Severity.BAD
    if not pod.alive:
        return "Terminating", Severity.WAIT
    if pod.phase == "Succeeded":
        return "Succeeded", Severity.QUIET
    in_group = Step.STARTED not in pod.path.steps
    stages = _GROUP_STAGES if in_group else _STAGES
    otherwise = "Held" if in_group else "Starting" if pod.reached(Step.SCHEDULED) else "Unscheduled"
    waits = otherwise if cause is None else str(cause.reason)
    return next(((name, tone) for step, name, tone in stages if pod.reached(step)), (waits, Severity.WAIT))


def _stages(rows: Iterable[PodRow]) -> str:
    return ", ".join(f"{many} {stage}" for stage, many in Counter(row.stage for row in rows).items())
