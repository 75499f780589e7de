"""A gang's start as an SVG that stands alone: a bar for each pod, or for each band of very many pods.

It fetches nothing, runs nothing, follows the reader's light or dark, and says in words what it shows.
"""

import html
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from math import ceil

import msgspec

from jobset_gate.explain.text import format_pod_count, format_time
from jobset_gate.objects import terminal_text
from jobset_gate.timeline.model import Activity, Step, StepSequence, Timeline
from jobset_gate.timeline.rows import MOST_PODS, SLOWEST, TimelineRow, arrival_order, rows
from jobset_gate.timeline.summary import IdleDevices, headline, offset, pod_text, sentences

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
MOST_MARKS = 10
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
CSS_CLASS = {
    Activity.WAITING: "waiting",
    Activity.PREPARING: "preparing",
    Activity.HELD: "held",
    Activity.STARTING: "starting",
    Activity.RUNNING: "running",
    Activity.UNKNOWN: "unknown",
}

_LIGHT = {
    "paper": "#ffffff", "ink": "#1f2328", "faint": "#59636e", "grid": "#d9dee3", "waiting": "#a3abb4",
    "preparing": "#56a3d9", "held": "#d97706", "starting": "#a78bda", "running": "#0f9d76", "failed": "#c9252d",
}  # fmt: skip
_DARK = {
    "paper": "#0d1117", "ink": "#e6edf3", "faint": "#9aa4af", "grid": "#30363d", "waiting": "#6b747e",
    "preparing": "#4793c9", "held": "#f0a030", "starting": "#b79cf0", "running": "#2fbf91", "failed": "#ff6b6b",
}  # fmt: skip

Window = tuple[float, float]
"""Seconds after the first pod was made, from when to when."""


def _colours(values: dict[str, str]) -> str:
    return "svg{" + "".join(f"--{name}:{value};" for name, value in values.items()) + "}"


STYLE = (
    _colours(_LIGHT)
    + "@media (prefers-color-scheme:dark){"
    + _colours(_DARK)
    + "}"
    + ".paper{fill:var(--paper)}"
    + "text{font-family:system-ui,sans-serif;font-size:12px;fill:var(--ink)}"
    + ".head{font-size:16px;font-weight:600}"
    + ".faint{fill:var(--faint)}"
    + ".part{font-weight:600;paint-order:stroke;stroke:var(--paper);stroke-width:5px}"
    + ".grid{stroke:var(--grid);stroke-width:1}"
    + ".opened{stroke:var(--ink);stroke-width:1.5}"
    + ".now{stroke:var(--faint);stroke-width:1;stroke-dasharray:4 3}"
    + ".range{stroke:var(--ink);stroke-width:1}"
    + ".pulled{stroke:var(--paper);stroke-width:1.5}"
    + ".failed{stroke:var(--failed);stroke-width:2.5}"
    + "".join(f".{it}{{fill:var(--{it})}}" for doing, it in CSS_CLASS.items() if doing is not Activity.UNKNOWN)
    + ".unknown{fill:none;stroke:var(--faint);stroke-dasharray:3 2}"
)


class Drawing(msgspec.Struct, frozen=True, kw_only=True):
    """What a picture needs of a timeline; bounded, however many pods there are."""

    title: str
    sentences: tuple[str, ...]
    notes: tuple[str, ...]
    path: StepSequence
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


def timeline_svg(timeline: Timeline, idle: Sequence[IdleDevices] = ()) -> str:
    """The whole SVG."""
    return drawing_svg(make_drawing(timeline, idle))


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
        sentences=tuple(sentences(timeline, idle)),
        notes=_notes(timeline, many),
        path=timeline.path,
        is_group=timeline.placing is not None,
        origin=timeline.origin,
        until=timeline.until,
        now=timeline.now,
        opened=timeline.opened,
        thin=thin,
        rows=found,
    )


def drawing_svg(drawing: Drawing, window: Window | None = None) -> str:
    """The whole SVG, or what happened in a window of it."""
    parts: list[str] = []
    below = 30.0
    for each in textwrap.wrap(drawing.title, TITLE):
        parts.append(_label(24, below, each, "head"))
        below += 22
    for each in [line for words in drawing.sentences for line in textwrap.wrap(words, WRAP)]:
        parts.append(_label(24, below, each, "faint"))
        below += LINE
    if drawing.origin is not None:
        chart = _Chart(drawing, drawing.origin, window or (0.0, drawing.seconds), below + 12)
        parts += chart.parts()
        below = chart.bottom
    for note in drawing.notes:
        for number, each in enumerate(textwrap.wrap(note, WRAP)):
            parts.append(_label(24, below, each if number else f"Note: {each}", "faint"))
            below += LINE
    words = ". ".join((*drawing.sentences, *drawing.notes))
    return _whole(drawing.title, words, below + 6, parts)


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


def _whole(title: str, words: str, height: float, parts: Sequence[str]) -> str:
    inner = (
        _element("title", _text(title), id="timeline-title"),
        _element("desc", _text(words), id="timeline-desc"),
        _element("style", STYLE),
        _rect(0, 0, WIDTH, height, "paper"),
        *parts,
    )
    return (
        _element(
            "svg",
            inner,
            xmlns="http://www.w3.org/2000/svg",
            viewBox=f"0 0 {WIDTH} {height:.0f}",
            width=WIDTH,
            height=round(height),
            role="img",
            aria_labelledby="timeline-title timeline-desc",
        )
        + "\n"
    )


class _Chart:
    """Legend, axis and rows, from `top` downwards."""

    def __init__(self, drawing: Drawing, origin: float, window: Window, top: float) -> None:
        self.drawing, self.rows, self.origin = drawing, drawing.rows, origin
        self.step = THIN if drawing.thin else 26 if len(self.rows) <= 12 else LINE
        self.start, self.seconds = origin + window[0], max(1.0, window[1] - window[0])
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
                self.headings.append((place - 8, f"the {SLOWEST} pods that {drawing.path.arrival_text} last", "part"))
            if drawing.thin and (before is None or before.pod.replicated_job != job):
                if before is not None:
                    place += 10 + max(0, 2 * LINE - THIN * counts[before.pod.replicated_job])
                self.headings.append((place + 12, _shorten(job, WORDS - 4), "name"))
                self.headings.append((place + 28, format_pod_count(counts[job]), "faint"))
            yield place
            place += self.step
        self.end = max(place, self.first + 2 * LINE) if drawing.thin else place

    def _place(self, moment: float) -> float:
        """Where it is on the axis; what lies beyond an end, at that end."""
        share = (moment - self.start) / self.seconds
        return LEFT + (RIGHT - LEFT) * min(1.0, max(0.0, share))

    def _shows(self, start: float, end: float | None = None) -> bool:
        """Whether some of it lies between the ends of the axis."""
        return start <= self.start + self.seconds and (start if end is None else end) >= self.start

    def _marks(self) -> Iterator[float]:
        """Round moments, at most ten and one."""
        days = 86_400 * (int(self.seconds) // (MOST_MARKS * 86_400) + 1)
        step = next((it for it in _STEPS if self.seconds / it <= MOST_MARKS), days)
        after = self.start - self.origin
        first, last = ceil(after / step), int((after + self.seconds) / step)
        return (self.origin + number * step for number in range(first, last + 1))

    def parts(self) -> Iterator[str]:
        yield from self._legend()
        yield from self._scale()
        yield from map(self._row, self.rows, self.places)
        for place, words, class_ in self.headings:
            yield _label(24, place, words, class_)
        yield from self._moments()

    def _legend(self) -> Iterator[str]:
        place = 24.0
        for doing in self.drawing.path.activities:
            yield _rect(place, self.top, 12, 12, CSS_CLASS[doing])
            yield _label(place + 17, self.top + 10, doing, "faint")
            place += 30 + 6.8 * len(doing)
        if not self.drawing.is_group:
            yield _element("line", x1=place, y1=self.top, x2=place, y2=self.top + 12, class_="failed")
            yield _label(place + 7, self.top + 10, "gave up", "faint")
            place += 66
        if any(row.is_band for row in self.rows):
            yield _line(place, self.top + 6, place + 14, self.top + 6, "range")
            yield _label(place + 20, self.top + 10, "first to last", "faint")
            place += 116
        if not self.drawing.thin and any(Step.PULLED in row.pod.times for row in self.rows if not row.is_band):
            yield _rect(place, self.top, 12, 12, CSS_CLASS[Activity.PREPARING])
            yield _line(place + 6, self.top + 2, place + 6, self.top + 10, "pulled")
            yield _label(place + 17, self.top + 10, "image there", "faint")

    def _scale(self) -> Iterator[str]:
        for mark in self._marks():
            place = self._place(mark)
            yield _line(place, self.first - 6, place, self.end, "grid")
            for height in (self.first - 10, self.end + 14):
                yield _label(place, height, offset(mark, self.origin), "faint", "middle")

    def _row(self, row: TimelineRow, place: float) -> str:
        thin, drawing = self.drawing.thin, self.drawing
        height = self.step - (0.0 if thin else 8.0)
        parts = [_element("title", _text(_tooltip(row, drawing.now, self.origin)))]
        if not thin:
            parts.append(_label(24, place + height / 2 + 4, _shorten(row.label, WORDS - 4), "name"))
        for it in row.pod.spans(drawing.until):
            if self._shows(it.start, it.end):
                left, right = self._place(it.start), self._place(it.end)
                parts.append(_rect(left, place, right - left, height, CSS_CLASS[it.activity]))
        for step in () if thin or row.is_band else (Step.PULLED, Step.MAIN_PULLED):
            if step in row.pod.times and self._shows(row.pod.times[step]):
                at = self._place(row.pod.times[step])
                parts.append(_line(at, place + 2, at, place + height - 2, "pulled"))
        if row.pod.gave_up is not None and self._shows(row.pod.gave_up):
            at = self._place(row.pod.gave_up)
            parts.append(_line(at, place - (not thin), at, place + height + (not thin), "failed"))
        parts += self._ranges(row, place + height + 2.5)
        return _element("g", parts, class_="band" if row.is_band else "pod")

    def _ranges(self, row: TimelineRow, height: float) -> Iterator[str]:
        """Below a band: from the first to the last of its pods that came to the gate, and that ran."""
        for it in row.sums:
            if it.step not in (row.pod.path.arrival, Step.RUNNING) or it.first is None or it.last is None:
                continue
            if self._shows(it.first, it.last):
                left, right = self._place(it.first), self._place(it.last)
                yield _line(left, height, max(right, left + 1), height, "range")

    def _moments(self) -> Iterator[str]:
        opened, now = self.drawing.opened, self.drawing.now
        if opened is not None and self._shows(opened):
            what = "group" if self.drawing.is_group else "gate"
            yield self._moment(opened, "opened", f"{what} opened {offset(opened, self.origin)}", 0)
        if self.drawing.until >= now and self._shows(now):
            yield self._moment(now, "now", f"now, {format_time(now)}", 15 if opened else 0)

    def _moment(self, moment: float, class_: str, words: str, lower: float) -> str:
        place = self._place(moment)
        half = 3.2 * len(words)
        middle = min(max(place, LEFT + half), RIGHT - half)
        return "".join(
            (
                _line(place, self.first - 6, place, self.end + 3, class_),  # the marks of the scale stay readable
                _line(place, self.end + 17, place, self.end + 20, class_),
                _label(middle, self.end + 32 + lower, words, "moment", "middle"),
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


# --- Elements --------------------------------------------------------------------------------------------------------


def _text(value: object) -> str:
    """Safe as the content of an element or the value of an attribute; controls are shown, and turn no text around."""
    return html.escape("".join(it for it in terminal_text.lines(str(value)) if it not in "\ufffe\uffff"))


def _element(name: str, content: str | Iterable[str] = "", /, **attributes: object) -> str:
    """`_element("rect", x=1, class_="held")`; `content` is SVG already. Numbers keep one decimal."""
    named = {key.rstrip("_").replace("_", "-"): value for key, value in attributes.items() if value is not None}
    given = "".join(f' {key}="{_value(value)}"' for key, value in named.items())
    inner = content if isinstance(content, str) else "".join(content)
    return f"<{name}{given}>{inner}</{name}>" if inner else f"<{name}{given}/>"


def _rect(x: float, y: float, width: float, height: float, class_: str) -> str:
    """A box; one that would be too thin to be seen is given half a point."""
    return _element("rect", x=x, y=y, width=max(0.5, width), height=height, class_=class_)


def _line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return _element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def _label(x: float, y: float, words: str, class_: str, anchor: str | None = None) -> str:
    """A line of text."""
    return _element("text", _text(words), x=x, y=y, class_=class_, text_anchor=anchor)


def _shorten(words: str, most: int) -> str:
    """Cut in the middle: names differ at their ends."""
    if len(words) <= most:
        return words
    left = (most - 1) // 2
    return f"{words[:left]}\u2026{words[len(words) - (most - 1 - left) :]}"


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else _text(value)
