"""Timelines as text: a table in the style of kubectl, or bars of plain letters for any terminal and for pipes."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime

from jobset_gate.cli.printers.output import aligned
from jobset_gate.explain.text import format_duration
from jobset_gate.objects.unstructured import Json
from jobset_gate.timeline.model import Activity, Placement, PodTimeline, Step, Timeline
from jobset_gate.timeline.rows import MOST_PODS, SLOWEST, TimelineRow, rows
from jobset_gate.timeline.summary import IdleDevices, StepSummary, headline, offset, sentences, step_summary, total_cost

UNKNOWN = "?"
NOT_YET = "-"

LETTERS = {
    Activity.WAITING: ".",
    Activity.PREPARING: ":",
    Activity.HELD: "#",
    Activity.STARTING: ">",
    Activity.RUNNING: "=",
    Activity.UNKNOWN: "?",
}
GAVE_UP = "X"
LEAST = 10
"""Letters of a bar, however narrow the terminal."""
MOST_LABEL = 28


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
    titles = [*(["PODS", "COUNT"] if bands else ["POD"]), *(_title(timeline, it) for it in steps), "HELD"]
    titles += ["NAME", "NODE"] if wide else []
    lines = [titles]
    for row in found:
        cells = [row.label, *([str(row.count)] if bands else [])]
        cells += [_cell(row, it, origin) for it in steps]
        cells.append("" if row.is_band else held(row.pod, timeline.now))
        cells += [row.pod.name or "-", row.pod.node or "-"] if wide else []
        lines.append(cells)
    return aligned(lines)


def _title(timeline: Timeline, step: Step) -> str:
    return "BOUND" if step is Step.SCHEDULED and timeline.placing is not None else step.name.replace("_", "-")


def _cell(row: TimelineRow, step: Step, origin: float) -> str:
    """When; of a band from the first to the last of it."""
    for it in row.sums:
        if it.step is step and it.first is not None and it.last is not None and it.last > it.first:
            return f"{offset(it.first, origin)}..{offset(it.last, origin).lstrip('+')}"
    if step in row.pod.times:
        return offset(row.pod.times[step], origin)
    return UNKNOWN if step in row.pod.unknown_steps else NOT_YET


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
            f"{len(timeline.pods)} pods are shown in bands of those that {arrived} together, from their"
            f" first to their last, and the {SLOWEST} that {arrived} last; --all shows every pod."
        )


# --- Bars ------------------------------------------------------------------------------------------------------------


def timeline_bars(timeline: Timeline, idle: Sequence[IdleDevices], columns: int) -> str:
    """Not wider than so many columns, as long as that leaves room for anything."""
    lines = [headline(timeline), *sentences(timeline, idle)]
    found = rows(timeline)
    if found and timeline.origin is not None:
        label = min(max(len(row.label) for row in found), MOST_LABEL, max(8, columns // 3))
        width = max(LEAST, columns - label - 3)
        lines += ["", *(_line(timeline, row, label, width) for row in found), _scale(timeline, label, width), ""]
        legend = [f"{LETTERS[doing]} {doing}" for doing in timeline.path.activities]
        lines.append("  ".join([*legend, *([f"{GAVE_UP} gave up"] if timeline.placing is None else [])]))
    lines += [f"Note: {it}" for it in timeline.notes]
    return "\n".join(lines) + "\n"


def _line(timeline: Timeline, row: TimelineRow, label: int, width: int) -> str:
    name = row.label if len(row.label) <= label else "~" + row.label[-(label - 1) :]
    return f"{name.ljust(label)} |{_bar(timeline, row, width)}|"


def _bar(timeline: Timeline, row: TimelineRow, width: int) -> str:
    """Each letter says what it was doing in the middle of that time; a doing is never left out for being short."""
    origin, until = timeline.origin or 0.0, timeline.until
    each = max(until - origin, 1.0) / width
    cells = [" "] * width
    spans = row.pod.spans(until)
    for span in spans:
        first = round((span.start - origin) / each)
        last = round((span.end - origin) / each)
        for cell in range(max(0, first), min(width, last)):
            cells[cell] = LETTERS[span.activity]
    for span in spans:
        cell = min(width - 1, max(0, int((span.start - origin) / each)))
        if span.end > span.start and LETTERS[span.activity] not in cells:
            cells[cell] = LETTERS[span.activity]
    if row.pod.gave_up is not None:
        cells[min(width - 1, max(0, round((row.pod.gave_up - origin) / each)))] = GAVE_UP
    return "".join(cells)


def _scale(timeline: Timeline, label: int, width: int) -> str:
    origin = timeline.origin or 0.0
    end = offset(max(timeline.until, origin + 1), origin)
    return " " * label + "  +0s" + end.rjust(max(1, width - 3))


# --- For programs ----------------------------------------------------------------------------------------------------


def timeline_json(it: Timeline, idle: Sequence[IdleDevices]) -> Json:
    """All of it. A time that is null was not reached yet, unless `unknown` names it."""
    mains = step_summary(it.pods, Step.RUNNING)
    return {
        "kind": "Timeline",
        "of": it.kind,
        "source": None if it.source is None else it.source.name,
        "namespace": it.namespace,
        "name": it.name,
        "restartAttempt": it.attempt,
        "now": _date(it.now),
        "created": _date(it.created),
        "firstPodCreated": _date(it.origin),
        "waitingSince": _date(it.waiting_since),
        "verdict": it.verdict or None,
        "opened": _date(it.opened),
        "timedOut": _date(it.timed_out),
        "message": it.decision or None,
        "expectedPods": it.expected,
        "startedPods": it.started,
        "resolutionSeconds": 1,
        "steps": [_sum(step_summary(it.pods, step)) for step in it.path.steps],
        "skewSeconds": {
            "barriers": step_summary(it.pods, Step.STARTED).spread,
            "mains": mains.spread,
            "mainsComplete": mains.known > 0 and not mains.pending and not mains.lost,
            "openedToLastMain": None if it.opened is None or mains.last is None else mains.last - it.opened,
        },
        "idle": [_idle(each) for each in idle],
        "cost": total_cost(idle),
        "group": None if it.placing is None else _placing(it, it.placing),
        "pods": [_pod(one, it.now) for one in it.pods],
        "replacements": [_pod(one, it.now) for one in it.replacements],
        "notes": list(it.notes),
    }


def _placing(it: Timeline, group: Placement) -> Json:
    return {
        "generation": group.generation or None,
        "minimum": group.minimum,
        "gathered": _date(group.gathered),
        "minimumBound": _date(group.satisfied),
        "minimumRunning": _date(group.working),
        "placementSkewSeconds": step_summary(it.pods, Step.SCHEDULED).spread,
    }


def _sum(it: StepSummary) -> Json:
    return {
        "step": str(it.step),
        "known": it.known,
        "unknown": it.lost,
        "pending": it.pending,
        "first": _date(it.first),
        "median": _date(it.median),
        "last": _date(it.last),
    }


def _idle(it: IdleDevices) -> Json:
    return {
        "resource": it.resource,
        "devices": it.devices,
        "deviceSeconds": round(it.seconds, 3),
        "podsUnknown": it.unknown,
        "cost": it.cost,
    }


def _pod(it: PodTimeline, now: float) -> Json:
    held = it.held_seconds(now)
    return {
        "name": it.name,
        "replicatedJob": it.replicated_job,
        "jobIndex": it.job_index,
        "completionIndex": it.index,
        "node": it.node or None,
        "phase": it.phase,
        "times": {str(step): _date(it.times.get(step)) for step in it.path.steps},
        "unknown": [str(step) for step in it.path.steps if step in it.unknown_steps],
        "gaveUp": _date(it.gave_up),
        "ended": _date(it.ended),
        "heldSeconds": None if held is None else round(held, 3),
    }


def _date(seconds: float | None) -> str | None:
    """With milliseconds only where they are known."""
    if seconds is None:
        return None
    moment = datetime.fromtimestamp(seconds, UTC)
    text = moment.isoformat(timespec="milliseconds" if moment.microsecond else "seconds")
    return text.replace("+00:00", "Z")
