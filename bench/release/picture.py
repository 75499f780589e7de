"""The picture: for each size and way, when the main containers wrote their first lines, on a logarithmic axis.

SVG by hand. Colours follow the reader's light or dark theme; each way has its letter as well.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from xml.sax.saxutils import escape

from bench.release.methods import METHODS, ReleaseMethod
from bench.release.results import ReleaseRun, Results

WIDTH, MARGIN, LABELS = 860, 16, 190
TOP, HEAD, ROW, AXIS = 66, 30, 46, 40
STRIP, COLUMN = 22, 2
"""Height of the fullest column of a strip, and the width of each."""
ROOM = 92
"""For the last label at the right."""
TICKS = (0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500)

LIGHT = {"ink": "#1f2328", "soft": "#59636e", "line": "#d1d9e0", "ground": "#ffffff"}
LIGHT |= {"kep": "#bc4c00", "annotation": "#8250df", "stream": "#0969da", "floor": "#59636e"}
DARK = {"ink": "#f0f6fc", "soft": "#9198a1", "line": "#3d444d", "ground": "#0d1117"}
DARK |= {"kep": "#f0883e", "annotation": "#ab7df8", "stream": "#4493f8", "floor": "#9198a1"}
FONT = """text { font: 13px system-ui, -apple-system, "Segoe UI", sans-serif; stroke: none; fill: currentColor }
.title { font-size: 16px; font-weight: 600 } .head { font-size: 14px; font-weight: 600 } .small { font-size: 12px }"""


def _style() -> str:
    """Each thing takes its colour from a class; no custom properties, which not every viewer of SVG knows."""
    light, dark = ("".join(f".{name} {{ color: {its} }} " for name, its in theme.items()) for theme in (LIGHT, DARK))
    return f"{FONT}\n{light}\n@media (prefers-color-scheme: dark) {{ {dark}}}"


class LogAxis:
    """Seconds to places, evenly in their logarithms."""

    def __init__(self, seconds: Iterable[float]) -> None:
        found = [max(one, TICKS[0]) for one in seconds]
        low, high = min(found), max(found)
        self.low = max(tick for tick in TICKS if tick <= low)
        self.high = next((tick for tick in TICKS if tick >= high), high)
        if self.high <= self.low:
            self.high = self.low * 2
        self.left, self.right = MARGIN + LABELS, WIDTH - MARGIN - ROOM

    @property
    def ticks(self) -> list[float]:
        return [tick for tick in TICKS if self.low <= tick <= self.high]

    def place(self, seconds: float) -> float:
        part = math.log(max(seconds, self.low) / self.low) / math.log(self.high / self.low)
        return self.left + min(1.0, part) * (self.right - self.left)


def drawn(results: Results) -> str:
    """The SVG document. Raises ValueError if there is no run."""
    if not results.runs:
        raise ValueError("no run, no picture")
    axis = LogAxis(second for run in results.runs for second in run.mains)
    body: list[str] = []
    top = TOP
    for pods in results.sizes:
        ways = [way for way in METHODS if results.of(way, pods)]
        body += _panel(results, axis, ways, pods, top)
        top += HEAD + ROW * len(ways) + AXIS
    return "\n".join([*_opening(top), *body, "</svg>", ""])


def _opening(height: int) -> Iterator[str]:
    size = f'viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}"'
    yield f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    yield "<title>From the last barrier's start to the main containers' first lines</title>"
    yield f"<style>{_style()}</style>"
    yield f'<rect class="ground" fill="currentColor" width="{WIDTH}" height="{height}" rx="8"/>'
    yield _text(MARGIN, 28, "From the last barrier's start to each main container's first line", "ink title")
    said = (
        "Columns: all main containers of all runs. Line: first to last, dot: median container; medians over the runs."
    )
    yield _text(MARGIN, 48, said, "soft small")


def _panel(results: Results, axis: LogAxis, ways: Sequence[ReleaseMethod], pods: int, top: int) -> Iterator[str]:
    bottom = top + HEAD + ROW * len(ways)
    yield _text(MARGIN, top + 18, f"{pods} pods on one node", "ink head")
    for tick in axis.ticks:
        place = f"{axis.place(tick):.1f}"
        yield f'<path class="line" stroke="currentColor" d="M{place} {top + HEAD - 4}V{bottom}"/>'
        yield _text(axis.place(tick), bottom + 16, f"{tick:g} s", "soft small", anchor="middle")
    for number, way in enumerate(ways):
        runs = list(results.of(way, pods).values())
        yield from _row(axis, way, runs, top + HEAD + ROW * number)


def _row(axis: LogAxis, way: ReleaseMethod, runs: Sequence[ReleaseRun], top: int) -> Iterator[str]:
    base = top + STRIP + 6
    first, middle, last = (median(each) for each in zip(*((it.first, it.median, it.last) for it in runs), strict=True))
    line, ends = base + 6, (axis.place(first), axis.place(last))
    bars = "".join(f"M{end:.1f} {line - 4}v8" for end in ends)
    yield _text(MARGIN, base - 6, f"({way.letter}) {way.short}", "ink")
    yield _text(MARGIN, base + 9, f"{len(runs)} run{'s' * (len(runs) != 1)}", "soft small")
    yield f'<g class="{way.key}" fill="currentColor" stroke="currentColor">'
    yield f'<path fill-opacity=".45" stroke="none" d="{_columns(axis, runs, base)}"/>'
    yield f'<path fill="none" stroke-width="2" d="M{ends[0]:.1f} {line}H{ends[1]:.1f}{bars}"/>'
    yield f'<circle stroke="none" cx="{axis.place(middle):.1f}" cy="{line}" r="4.5"/>'
    yield "</g>"
    beyond = max(axis.place(it.last) for it in runs) + 10
    yield _text(beyond, line + 4, f"last {_seconds(last)}", "ink")


def _columns(axis: LogAxis, runs: Sequence[ReleaseRun], base: int) -> str:
    """How many containers began at each place, as one path."""
    found = Counter(int((axis.place(second) - axis.left) // COLUMN) for run in runs for second in run.mains)
    fullest = max(found.values())
    return "".join(
        f"M{axis.left + COLUMN * place:.0f} {base}v-{max(2.0, STRIP * count / fullest):.1f}h{COLUMN}V{base}z"
        for place, count in sorted(found.items())
    )


def _seconds(value: float) -> str:
    return f"{value:.0f} s" if value >= 20 else f"{value:.1f} s"


def _text(left: float, base: float, said: str, kind: str, anchor: str = "") -> str:
    its = f' class="{kind}"' + (f' text-anchor="{anchor}"' if anchor else "")
    return f'<text x="{left:.1f}" y="{base:.0f}"{its}>{escape(said)}</text>'
