"""Pods of one gang as the page lists them, and the window of their timeline. Pure."""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from controllers.statuspage.rows import Severity
from jobset_gate.barrier.model import PendingCause, Value
from jobset_gate.timeline.model import PLACEMENT_STEPS, PodTimeline, Step
from jobset_gate.timeline.svg import LEFT, RIGHT, WIDTH, Drawing, Window

MAX_PODS: Final = 300
"""Pods of one page, those that need attention first."""
NARROWEST: Final = 4
"""Seconds of a window."""

_STAGES: Final = {Step.RUNNING: "Running", Step.RELEASED: "Released", Step.STARTED: "Started"}
"""Of the pods of a gang, the furthest first."""
_GROUP_STAGES: Final = {Step.RUNNING: "Running", Step.SCHEDULED: "Bound"}
"""Of the pods of a pod group."""


class PodRow(Value, frozen=True):
    pod: PodTimeline
    stage: str
    """How far it is, or the reason for which it has not started."""
    tone: Severity
    message: str


class PodList(Value, frozen=True):
    rows: tuple[PodRow, ...] = ()
    count: int = 0
    """All pods, shown or not."""

    def parts(self) -> list[tuple[str, str, list[PodRow]]]:
        """Name, stages in words and rows of each replicatedJob, or of what made them, in the order of the spec."""
        found: dict[str, list[PodRow]] = {}
        for row in self.rows:
            found.setdefault(row.pod.replicated_job, []).append(row)
        return [(name, _stages(rows), rows) for name, rows in found.items()]


def pod_list(pods: Iterable[PodTimeline], pending: Mapping[str, PendingCause]) -> PodList:
    """`pending` by name of the pod. Those that have not started come first, the oldest of them first."""
    rows = [_row(pod, pending.get(pod.name)) for pod in pods]
    turn = {name: number for number, name in enumerate(dict.fromkeys(row.pod.replicated_job for row in rows))}
    shown = sorted(rows, key=lambda it: (it.tone, it.pod.times.get(Step.CREATED, 0.0)))[:MAX_PODS]
    shown.sort(key=lambda it: turn[it.pod.replicated_job])
    return PodList(rows=tuple(shown), count=len(rows))


def _row(pod: PodTimeline, cause: PendingCause | None) -> PodRow:
    stage, tone = _stage(pod, cause)
    message = "" if cause is None or stage != cause.reason else cause.message
    return PodRow(pod=pod, stage=stage, tone=tone, message=message)


def _stage(pod: PodTimeline, cause: PendingCause | None) -> tuple[str, Severity]:
    if pod.phase == "Failed":
        return ("TimedOut" if pod.gave_up is not None else "Failed"), Severity.BAD
    if not pod.alive:
        return "Terminating", Severity.WAIT
    if pod.phase == "Succeeded":
        return "Succeeded", Severity.QUIET
    in_group = pod.path is PLACEMENT_STEPS
    for step, name in (_GROUP_STAGES if in_group else _STAGES).items():
        if pod.reached(step):
            return name, Severity.GOOD
    if in_group:
        return "Unscheduled" if pod.reached(Step.OPENED) else "Held", Severity.WAIT
    waits = "Starting" if pod.reached(Step.SCHEDULED) else "Unscheduled"
    return waits if cause is None else str(cause.reason), Severity.WAIT


def _stages(rows: Iterable[PodRow]) -> str:
    return ", ".join(f"{many} {stage}" for stage, many in Counter(row.stage for row in rows).items())


# --- The window of the timeline --------------------------------------------------------------------------------------


def parse_window(given: Mapping[str, str]) -> Window | None:
    """None: the whole timeline."""
    start, end = given.get("from", ""), given.get("to", "")
    if not all(it.isascii() and it.isdigit() and len(it) < 9 for it in (start, end)) or int(start) >= int(end):
        return None
    return float(start), float(end)


@dataclass(frozen=True, slots=True)
class PodsSection:
    """Pods and timeline of a page; or `problem`: why there are none."""

    pods: PodList = field(default_factory=PodList)
    drawing: Drawing | None = None
    svg: str = ""
    """The address of the picture."""
    window: Window | None = None
    path: str = ""
    """The address of the page."""
    problem: str = ""

    @property
    def picture(self) -> str:
        """The address of the picture of this window."""
        return self.svg if self.window is None else _address(self.svg, *map(int, self.window))

    @property
    def whole(self) -> int:
        """Seconds of the whole timeline."""
        return 0 if self.drawing is None else ceil(self.drawing.seconds)

    @property
    def shown(self) -> tuple[int, int]:
        """Seconds from when to when."""
        start, end = self.window or (0.0, self.whole)
        return int(start), int(end)

    @property
    def edges(self) -> tuple[float, float]:
        """Where the axis begins and ends, as shares of the picture's width."""
        return LEFT / WIDTH, RIGHT / WIDTH

    def links(self) -> Iterator[tuple[str, str]]:
        """What one may do: its name and address, "" if it is of no use here."""
        start, end = self.shown
        width, whole = end - start, self.whole
        middle = (start + end) // 2
        drawing = self.drawing
        if drawing is not None and drawing.opened is not None and drawing.origin is not None and self.window is None:
            middle = round(drawing.opened - drawing.origin)
        narrow = max(NARROWEST, width // 2)
        yield "Zoom in", self._link(middle - narrow // 2, narrow) if width > NARROWEST else ""
        yield "Zoom out", self._link(start - width // 2, 2 * width) if width < whole else ""
        yield "Earlier", self._link(start - width // 2, width) if start > 0 else ""
        yield "Later", self._link(start + width // 2, width) if end < whole else ""
        yield "Whole", self.path if self.window is not None else ""

    def _link(self, start: int, width: int) -> str:
        if width >= self.whole:
            return self.path
        start = min(max(0, start), self.whole - width)
        return _address(self.path, start, start + width)


def _address(path: str, start: int, end: int) -> str:
    return f"{path}{'&' if '?' in path else '?'}from={start}&to={end}"
