"""A timeline as a table, in the style of kubectl: a line for each pod, or for each band of many."""

from collections.abc import Iterator, Sequence

from jobset_gate.cli.printers.columns import aligned
from jobset_gate.explain.text import format_duration
from jobset_gate.timeline.model import PodTimeline, Step, Timeline
from jobset_gate.timeline.rows import MOST_PODS, SLOWEST, TimelineRow, rows
from jobset_gate.timeline.text import headline, offset, sentences
from jobset_gate.timeline.totals import IdleDevices

UNKNOWN = "?"
NOT_YET = "-"

_TITLES = {
    Step.CREATED: "CREATED",
    Step.OPENED: "OPENED",
    Step.SCHEDULED: "SCHEDULED",
    Step.PULLED: "PULLED",
    Step.STARTED: "STARTED",
    Step.RELEASED: "RELEASED",
    Step.MAIN_PULLED: "MAIN-PULLED",
    Step.RUNNING: "RUNNING",
}


def timeline_table(timeline: Timeline, idle: Sequence[IdleDevices], *, wide: bool, every: bool) -> str:
    """Headline, sums, the pods and what one has to know. `wide`: pods' names and nodes; `every`: no bands."""
    lines = [headline(timeline), *sentences(timeline, idle)]
    many = len(timeline.pods)
    found = rows(timeline, many if every else MOST_PODS)
    if found and timeline.origin is not None:
        lines += ["", *_table(timeline, found, timeline.origin, wide=wide), ""]
        lines += _key(timeline, found)
    lines += [f"Note: {it}" for it in timeline.notes]
    return "\n".join(lines) + "\n"


def _table(timeline: Timeline, found: Sequence[TimelineRow], origin: float, *, wide: bool) -> list[str]:
    steps = [it for it in timeline.path.steps if wide or it is not Step.MAIN_PULLED]
    bands = any(row.is_band for row in found)
    titles = [
        "PODS" if bands else "POD",
        *(["COUNT"] if bands else []),
        *(_title(timeline, it) for it in steps),
        "HELD",
    ]
    titles += ["NAME", "NODE"] if wide else []
    lines = [titles]
    for row in found:
        cells = [row.label, *([str(row.count)] if bands else [])]
        cells += [_cell(row, it, origin) for it in steps]
        cells.append(_held(row, timeline.now))
        cells += [row.pod.name or "-", row.pod.node or "-"] if wide else []
        lines.append(cells)
    return aligned(lines)


def _title(timeline: Timeline, step: Step) -> str:
    return "BOUND" if step is Step.SCHEDULED and timeline.placing is not None else _TITLES[step]


def _cell(row: TimelineRow, step: Step, origin: float) -> str:
    """When; of a band from the first to the last of it."""
    for it in row.sums:
        if it.step is step and it.first is not None and it.last is not None and it.last > it.first:
            return f"{offset(it.first, origin)}..{offset(it.last, origin).lstrip('+')}"
    if step in row.pod.times:
        return offset(row.pod.times[step], origin)
    return UNKNOWN if step in row.pod.unknown_steps else NOT_YET


def _held(row: TimelineRow, now: float) -> str:
    if row.is_band:
        return ""
    return held(row.pod, now)


def held(pod: PodTimeline, now: float) -> str:
    """`5s`; `5s+` for one that is still there."""
    first, last = pod.path.held
    if not pod.reached(first):
        return NOT_YET
    seconds = pod.held_seconds(now)
    if seconds is None:
        return UNKNOWN
    still = not pod.reached(last) and pod.gave_up is None
    return format_duration(seconds) + ("+" if still else "")


def _key(timeline: Timeline, found: Sequence[TimelineRow]) -> Iterator[str]:
    yield f"Times count from the first pod's creation. {NOT_YET} not yet, {UNKNOWN} no longer known."
    if any(row.is_band for row in found):
        arrived = timeline.path.arrival_text
        yield (
            f"{len(timeline.pods)} pods are told in bands of those that {arrived} together, from their"
            f" first to their last, and the {SLOWEST} that {arrived} last; --all tells every pod."
        )
