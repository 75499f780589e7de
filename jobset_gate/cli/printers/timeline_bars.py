"""A timeline as bars of plain letters, for any terminal and for pipes."""

from collections.abc import Sequence

from jobset_gate.timeline.model import Activity, Timeline
from jobset_gate.timeline.rows import TimelineRow, rows
from jobset_gate.timeline.text import headline, offset, sentences
from jobset_gate.timeline.totals import IdleDevices

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
