"""A gang's start as an SVG that stands alone: a bar for each pod, or for each band of very many pods.

It fetches nothing, runs nothing, follows the reader's light or dark, and says in words what it shows.
"""

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

import msgspec

from jobset_gate.explain.text import format_pod_count, format_time
from jobset_gate.timeline import svg_elements as svg
from jobset_gate.timeline.model import Activity, Step, Timeline
from jobset_gate.timeline.rows import MOST_PODS, SLOWEST, TimelineRow, arrival_order, rows
from jobset_gate.timeline.summary import IdleDevices, headline, offset, pod_text, sentences
from jobset_gate.timeline.svg_elements import CSS_CLASS, STYLE, TimeAxis

WIDTH = 1000
LEFT = 210
RIGHT = WIDTH - 32
LINE = 18
THIN = 3
"""Height of a pod's row where there are too many for their names."""
MOST_THIN = 400
"""More pods than these are drawn as bands."""
WORDS = 32
"""Letters of a row's label."""
TITLE = 95
"""Letters of a line of the headline."""
WRAP = 140
"""Letters of a note."""

Window = tuple[float, float]
"""Seconds after the first pod was made, from when to when."""


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture needs of a timeline; bounded, however many pods there are."""

    title: str
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    activities: tuple[Activity, ...]
    arrival: str
    """What the pods did that they are ordered by, in words."""
    is_group: bool
    origin: float | None
    until: float
    now: float
    opened: float | None
    thin: bool
    """Pods have no names: they are ordered by when they arrived, below the name of their replicatedJob."""
    rows: tuple[TimelineRow, ...]

    @property
    def seconds(self) -> float:
        """From the first pod to the last thing of note."""
        return 0.0 if self.origin is None else max(1.0, self.until - self.origin)


def timeline_svg(timeline: Timeline, idle: Sequence[IdleDevices] = (), *, name: str = "timeline") -> str:
    """The whole SVG. `name` begins the ids in it, for pages with several."""
    return drawing_svg(make_drawing(timeline, idle), name=name)


def make_drawing(timeline: Timeline, idle: Sequence[IdleDevices] = ()) -> Drawing:
    """With a row for each pod while they are at most MOST_THIN."""
    many = len(timeline.pods)
    thin = MOST_PODS < many <= MOST_THIN
    found = rows(timeline, MOST_THIN if thin else MOST_PODS)
    if thin:
        turn = {name: number for number, name in enumerate(dict.fromkeys(it.pod.replicated_job for it in found))}
        found = tuple(sorted(found, key=lambda it: (turn[it.pod.replicated_job], arrival_order(it.pod))))
    return Drawing(
        title=headline(timeline),
        sentences=sentences(timeline, idle),
        notes=_notes(timeline, many),
        activities=timeline.path.activities,
        arrival=timeline.path.arrival_text,
        is_group=timeline.placing is not None,
        origin=timeline.origin,
        until=timeline.until,
        now=timeline.now,
        opened=timeline.opened,
        thin=thin,
        rows=found,
    )


def drawing_svg(drawing: Drawing, window: Window | None = None, *, name: str = "timeline") -> str:
    """The whole SVG, or what happened in a window of it."""
    parts: list[str] = []
    below = 30.0
    for each in textwrap.wrap(drawing.title, TITLE):
        parts.append(svg.label(24, below, each, "head"))
        below += 22
    for each in [line for words in drawing.sentences for line in textwrap.wrap(words, WRAP)]:
        parts.append(svg.label(24, below, each, "faint"))
        below += LINE
    if drawing.origin is not None:
        chart = _Chart(drawing, drawing.origin, window or (0.0, drawing.seconds), below + 12)
        parts += chart.parts()
        below = chart.bottom
    for note in drawing.notes:
        for number, each in enumerate(textwrap.wrap(note, WRAP)):
            parts.append(svg.label(24, below, each if number else f"Note: {each}", "faint"))
            below += LINE
    words = ". ".join((*drawing.sentences, *drawing.notes))
    return _whole(name, drawing.title, words, below + 6, parts)


def _notes(timeline: Timeline, many: int) -> tuple[str, ...]:
    if many <= MOST_PODS:
        return timeline.notes
    pods, came = format_pod_count(many), timeline.path.arrival_text
    note = f"{pods}, a line for each, in the order in which they {came}"
    if many > MOST_THIN:
        note = (
            f"{pods}, drawn in bands of those that {came} together, 0-10% first; a box ends when half of its band"
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


class _Chart:
    """Legend, axis and rows, from `top` downwards."""

    def __init__(self, drawing: Drawing, origin: float, window: Window, top: float) -> None:
        self.drawing, self.rows, self.origin = drawing, drawing.rows, origin
        self.step = THIN if drawing.thin else 26 if len(self.rows) <= 12 else LINE
        self.axis = TimeAxis(origin + window[0], origin + window[1], LEFT, RIGHT, zero=origin)
        self.top, self.first = top, top + 46
        self.headings: list[tuple[float, str, str]] = []
        """Of parts of the rows: place, words and class."""
        self.places = list(self._placed())
        self.bottom = self.end + 66

    def _placed(self) -> Iterator[float]:
        place, drawing = self.first, self.drawing
        counts = Counter(row.pod.replicated_job for row in self.rows)
        for number, row in enumerate(self.rows):
            before = self.rows[number - 1] if number else None
            job = row.pod.replicated_job
            if row.slow and before and not before.slow:
                place += 28
                self.headings.append((place - 8, f"the {SLOWEST} pods that {drawing.arrival} last", "part"))
            if drawing.thin and (before is None or before.pod.replicated_job != job):
                if before is not None:
                    place += 10 + max(0, 2 * LINE - THIN * counts[before.pod.replicated_job])
                self.headings.append((place + 12, svg.shorten(job, WORDS - 4), "name"))
                self.headings.append((place + 28, format_pod_count(counts[job]), "faint"))
            yield place
            place += self.step
        self.end = max(place, self.first + 2 * LINE) if drawing.thin else place

    def parts(self) -> Iterator[str]:
        yield from self._legend()
        yield from self._scale()
        yield from map(self._row, self.rows, self.places)
        for place, words, class_ in self.headings:
            yield svg.label(24, place, words, class_)
        yield from self._moments()

    def _legend(self) -> Iterator[str]:
        place = 24.0
        for doing in self.drawing.activities:
            yield svg.rect(place, self.top, 12, 12, CSS_CLASS[doing])
            yield svg.label(place + 17, self.top + 10, doing, "faint")
            place += 30 + 6.8 * len(doing)
        if not self.drawing.is_group:
            yield svg.element("line", x1=place, y1=self.top, x2=place, y2=self.top + 12, class_="failed")
            yield svg.label(place + 7, self.top + 10, "gave up", "faint")
            place += 66
        if any(row.is_band for row in self.rows):
            yield svg.line(place, self.top + 6, place + 14, self.top + 6, "range")
            yield svg.label(place + 20, self.top + 10, "first to last", "faint")
            place += 116
        if not self.drawing.thin and any(Step.PULLED in row.pod.times for row in self.rows if not row.is_band):
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
        thin, drawing = self.drawing.thin, self.drawing
        height = self.step - (0.0 if thin else 8.0)
        parts = [svg.element("title", svg.text(_tooltip(row, drawing.now, self.origin)))]
        if not thin:
            parts.append(svg.label(24, place + height / 2 + 4, svg.shorten(row.label, WORDS - 4), "name"))
        for it in row.pod.spans(drawing.until):
            if self.axis.shows(it.start, it.end):
                left, right = self.axis.place(it.start), self.axis.place(it.end)
                parts.append(svg.rect(left, place, right - left, height, CSS_CLASS[it.activity]))
        for step in () if thin or row.is_band else (Step.PULLED, Step.MAIN_PULLED):
            if step in row.pod.times and self.axis.shows(row.pod.times[step]):
                at = self.axis.place(row.pod.times[step])
                parts.append(svg.line(at, place + 2, at, place + height - 2, "pulled"))
        if row.pod.gave_up is not None and self.axis.shows(row.pod.gave_up):
            at = self.axis.place(row.pod.gave_up)
            parts.append(svg.line(at, place - (not thin), at, place + height + (not thin), "failed"))
        parts += self._ranges(row, place + height + 2.5)
        return svg.element("g", parts, class_="band" if row.is_band else "pod")

    def _ranges(self, row: TimelineRow, height: float) -> Iterator[str]:
        """Below a band: from the first to the last of its pods that came to the gate, and that ran."""
        for it in row.sums:
            if it.step not in (row.pod.path.arrival, Step.RUNNING) or it.first is None or it.last is None:
                continue
            if self.axis.shows(it.first, it.last):
                left, right = self.axis.place(it.first), self.axis.place(it.last)
                yield svg.line(left, height, max(right, left + 1), height, "range")

    def _moments(self) -> Iterator[str]:
        opened, now = self.drawing.opened, self.drawing.now
        if opened is not None and self.axis.shows(opened):
            what = "group" if self.drawing.is_group else "gate"
            yield self._moment(opened, "opened", f"{what} opened {offset(opened, self.origin)}", 0)
        if self.drawing.until >= now and self.axis.shows(now):
            yield self._moment(now, "now", f"now, {format_time(now)}", 15 if opened else 0)

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
