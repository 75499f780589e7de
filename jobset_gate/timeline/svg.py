"""picture(timeline): a gang's start as an SVG that stands alone: a bar for each pod, or for each band of many pods.

It fetches nothing, runs nothing, follows the reader's light or dark, and says in words what it shows.
"""

import textwrap
from collections.abc import Iterator, Sequence

from jobset_gate.explain.text import format_pod_count, format_time
from jobset_gate.timeline import svg_elements as svg
from jobset_gate.timeline.model import Activity, Step, Timeline
from jobset_gate.timeline.rows import MOST_PODS, SLOWEST, TimelineRow, rows
from jobset_gate.timeline.summary import IdleDevices, headline, offset, pod_text, sentences
from jobset_gate.timeline.svg_elements import CSS_CLASS, STYLE, TimeAxis

WIDTH = 1000
LEFT = 210
RIGHT = WIDTH - 24
LINE = 18
WORDS = 32
"""Letters of a row's label."""
TITLE = 95
"""Letters of a line of the headline."""
WRAP = 140
"""Letters of a note."""


def timeline_svg(timeline: Timeline, idle: Sequence[IdleDevices] = (), *, name: str = "timeline") -> str:
    """The whole SVG. `name` begins the ids in it, for pages with several."""
    said = sentences(timeline, idle)
    parts: list[str] = []
    below = 30.0
    for each in textwrap.wrap(headline(timeline), TITLE):
        parts.append(svg.label(24, below, each, "head"))
        below += 22
    for each in [line for words in said for line in textwrap.wrap(words, WRAP)]:
        parts.append(svg.label(24, below, each, "faint"))
        below += LINE
    if timeline.origin is not None:
        drawn = _Drawing(timeline, below + 12)
        parts += drawn.parts()
        below = drawn.bottom
    for note in _notes(timeline):
        for number, each in enumerate(textwrap.wrap(note, WRAP)):
            parts.append(svg.label(24, below, each if number else f"Note: {each}", "faint"))
            below += LINE
    return _whole(name, headline(timeline), ". ".join((*said, *_notes(timeline))), below + 6, parts)


def _notes(timeline: Timeline) -> tuple[str, ...]:
    if len(timeline.pods) <= MOST_PODS:
        return timeline.notes
    many = format_pod_count(len(timeline.pods))
    came = timeline.path.arrival_text
    note = (
        f"{many}, drawn in bands of those that {came} together, 0-10% first; a box ends when half of its band"
        f" had got there, and the lines below it go from the first to the last that {came}, and that ran"
    )
    return (note, *timeline.notes)


def _whole(name: str, title: str, words: str, height: float, parts: Sequence[str]) -> str:
    inner = (
        svg.element("title", svg.text(title), id=f"{name}-title"),
        svg.element("desc", svg.text(words), id=f"{name}-desc"),
        svg.element("style", STYLE),
        svg.rect(0, 0, WIDTH, height, "paper"),
        *parts,
    )
    return (
        svg.element(
            "svg",
            inner,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {height:.0f}",
            width=WIDTH,
            height=round(height),
            role="img",
            aria_labelledby=f"{name}-title {name}-desc",
        )
        + "\n"
    )


class _Drawing:
    """Legend, axis and rows, from `top` downwards."""

    def __init__(self, timeline: Timeline, top: float) -> None:
        self.timeline = timeline
        self.rows = rows(timeline)
        self.step = 26 if len(self.rows) <= 12 else LINE
        self.origin = timeline.origin or 0.0
        self.axis = TimeAxis(self.origin, timeline.until, LEFT, RIGHT)
        self.top = top
        self.first = top + 46
        extra = 28 if any(row.slow for row in self.rows) else 0
        self.end = self.first + self.step * len(self.rows) + extra
        self.bottom = self.end + 66

    def parts(self) -> Iterator[str]:
        yield from self._legend()
        yield from self._scale()
        place = self.first
        for number, row in enumerate(self.rows):
            if row.slow and not self.rows[number - 1].slow:
                place += 28
                yield svg.label(
                    24, place - 8, f"the {SLOWEST} pods that {self.timeline.path.arrival_text} last", "part"
                )
            yield self._row(row, place)
            place += self.step
        yield from self._moments()

    def _legend(self) -> Iterator[str]:
        place = 24.0
        for doing in self.timeline.path.activities:
            yield svg.rect(place, self.top, 12, 12, CSS_CLASS[doing])
            yield svg.label(place + 17, self.top + 10, doing, "faint")
            place += 30 + 6.8 * len(doing)
        if self.timeline.placing is None:
            yield svg.element("line", x1=place, y1=self.top, x2=place, y2=self.top + 12, class_="failed")
            yield svg.label(place + 7, self.top + 10, "gave up", "faint")
            place += 66
        if any(row.is_band for row in self.rows):
            yield svg.line(place, self.top + 6, place + 14, self.top + 6, "range")
            yield svg.label(place + 20, self.top + 10, "first to last", "faint")
            place += 116
        if any(Step.PULLED in row.pod.times for row in self.rows if not row.is_band):
            yield svg.rect(place, self.top, 12, 12, CSS_CLASS[Activity.PREPARING])
            yield svg.line(place + 6, self.top + 2, place + 6, self.top + 10, "pulled")
            yield svg.label(place + 17, self.top + 10, "image there", "faint")

    def _scale(self) -> Iterator[str]:
        for mark in self.axis.marks():
            place = self.axis.place(mark)
            yield svg.line(place, self.first - 6, place, self.end, "grid")
            for height in (self.first - 10, self.end + 14):
                yield svg.label(place, height, offset(mark, self.origin), "faint", "middle")

    def _row(self, row: TimelineRow, place: float) -> str:
        height = self.step - 8.0
        parts = [svg.element("title", svg.text(_tooltip(row, self.timeline.now, self.origin)))]
        parts.append(svg.label(24, place + height / 2 + 4, svg.shorten(row.label, WORDS - 4), "name"))
        for it in row.pod.spans(self.timeline.until):
            left, right = self.axis.place(it.start), self.axis.place(it.end)
            parts.append(svg.rect(left, place, right - left, height, CSS_CLASS[it.activity]))
        for step in (Step.PULLED, Step.MAIN_PULLED):
            if not row.is_band and step in row.pod.times:
                at = self.axis.place(row.pod.times[step])
                parts.append(svg.line(at, place + 2, at, place + height - 2, "pulled"))
        if row.pod.gave_up is not None:
            at = self.axis.place(row.pod.gave_up)
            parts.append(svg.line(at, place - 1, at, place + height + 1, "failed"))
        parts += self._ranges(row, place + height + 2.5)
        return svg.element("g", parts, class_="band" if row.is_band else "pod")

    def _ranges(self, row: TimelineRow, height: float) -> Iterator[str]:
        """Below a band: from the first to the last of its pods that came to the gate, and that ran."""
        for it in row.sums:
            if it.step in (row.pod.path.arrival, Step.RUNNING) and it.first is not None and it.last is not None:
                left, right = self.axis.place(it.first), self.axis.place(it.last)
                yield svg.line(left, height, max(right, left + 1), height, "range")

    @property
    def _gate(self) -> str:
        return "gate opened" if self.timeline.placing is None else "group opened"

    def _moments(self) -> Iterator[str]:
        opened = self.timeline.opened
        if opened is not None:
            yield self._moment(opened, "opened", f"{self._gate} {offset(opened, self.origin)}", 0)
        if self.timeline.until >= self.timeline.now:
            yield self._moment(self.timeline.now, "now", f"now, {format_time(self.timeline.now)}", 15 if opened else 0)

    def _moment(self, moment: float, class_: str, words: str, lower: float) -> str:
        place = self.axis.place(moment)
        half = 3.2 * len(words)
        middle = min(max(place, LEFT + half), RIGHT - half)
        return "".join(
            (
                svg.line(place, self.first - 6, place, self.end + 3, class_),  # the marks of the scale stay readable
                svg.line(place, self.end + 17, place, self.end + 20, class_),
                svg.label(middle, self.end + 32 + lower, words, "moment", "middle"),
            )
        )


def _tooltip(row: TimelineRow, now: float, origin: float) -> str:
    """The tooltip of the row, also for screen readers."""
    if not row.is_band:
        node = f" on {row.pod.node}" if row.pod.node else ""
        return f"{row.label} ({row.pod.name}){node}: {pod_text(row.pod, now, origin)}"
    parts = [f"{row.label}: {format_pod_count(row.count)}"]
    for it in row.sums:
        if it.step not in row.pod.path.transition_steps:
            continue
        if it.first is not None and it.last is not None:
            first, last = offset(it.first, origin), offset(it.last, origin)
            parts.append(f"{it.step} {first} to {last}" if it.known > 1 else f"{it.step} {first}")
        if it.pending:
            parts.append(f"{it.pending} not yet {it.step}")
        if it.lost:
            parts.append(f"{it.step} at a time not known: {it.lost}")
    return ", ".join(parts)
