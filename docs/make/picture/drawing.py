"""Frames of a terminal as an animated SVG, in light and dark, with no font and no file from elsewhere."""

from collections.abc import Mapping, Sequence
from html import escape
from types import MappingProxyType
from typing import Final

from docs.make.picture.frames import BETWEEN, Frame, Run, Stay, stays
from docs.make.picture.recording import Size

WIDE, HIGH, MARGIN, BAR = 7.8, 18, 14, 32
"""Of a letter, of a line, around the terminal, and above it, in pixels."""
REST: Final = 6.0
"""Seconds for which the end stands, first of all, so that the picture is never an empty terminal."""
COLOURS: Final[Mapping[str, str]] = MappingProxyType({"": "t", "f92672": "p", "729c1f": "f", "3a3a3a": "b"})
"""Classes by the colours that rich gives to a bar: what is done, what is finished, what is to come."""

_FORMAT: Final = "http://www.w3.org/2000/svg"
_STYLE: Final = """
text{font:13px ui-monospace,SFMono-Regular,Menlo,Consolas,monospace;white-space:pre}
.bg{fill:#fbfbf9;stroke:#d0cfc8}.t{fill:#24292f}.p{fill:#b5165a}.f{fill:#3f6b0d}.b{fill:#d0cfc8}.h{fill:#6e7781}.s{font-weight:700}
@media (prefers-color-scheme: dark){
.bg{fill:#15181d;stroke:#363c45}.t{fill:#d7dde4}.p{fill:#ff6ea9}.f{fill:#9ccc4f}.b{fill:#3d444d}.h{fill:#8b949e}}
"""


def draw(shown: Sequence[Frame], size: Size, *, title: str, described: str) -> str:
    """The picture: the last frame, then all from the beginning. Without animation it is the last frame alone."""
    shown = [Frame(0, shown[-1].rows), *(Frame(it.at + REST, it.rows) for it in shown)]
    lines = max(len(it.rows) for it in shown)
    wide, high = size.columns * WIDE + 2 * MARGIN, lines * HIGH + BAR + MARGIN
    whole = shown[-1].at + BETWEEN
    parts = stays(shown)
    names = _names(parts)
    return "\n".join(
        [
            f'<svg xmlns="{_FORMAT}" xml:space="preserve" role="img" aria-labelledby="title description"',
            f'viewBox="0 0 {_number(wide)} {_number(high)}">',
            f'<title id="title">{escape(title)}</title>',
            f'<desc id="description">{escape(described)}</desc>',
            f"<style>{_STYLE}{_moves(names, whole)}</style>",
            f'<rect class="bg" x="0.5" y="0.5" width="{_number(wide - 1)}" height="{_number(high - 1)}" rx="8"/>',
            f'<text class="h" x="{MARGIN}" y="20">$ {escape(title)}</text>',
            *(_line(it, names) for it in parts),
            "</svg>\n",
        ]
    )


def _names(parts: Sequence[Stay]) -> dict[tuple[float, float | None], str]:
    """A class for each time that some row stands; "" for what is always there."""
    times = dict.fromkeys((it.begin, it.end) for it in parts)
    return {time: f"k{number}" for number, time in enumerate(times)}


def _moves(names: Mapping[tuple[float, float | None], str], whole: float) -> str:
    rules = []
    for (begin, end), name in names.items():
        stops = f"0%{{opacity:{int(begin == 0)}}}"
        stops += f"{_share(begin, whole)}{{opacity:1}}" if begin else ""
        stops += f"{_share(end, whole)}{{opacity:0}}" if end is not None else ""
        rules.append(f".{name}{{animation-name:{name}}}@keyframes {name}{{{stops}}}")
    gone = ",".join(f".{name}" for (_, end), name in names.items() if end is not None)
    return (
        "\n".join(rules)
        + f"\n.k{{animation-duration:{_number(whole)}s;animation-timing-function:step-end;"
        + "animation-iteration-count:infinite}"
        + (f"{gone}{{opacity:0}}" if gone else "")
        + "\n@media (prefers-reduced-motion: reduce){.k{animation:none}}\n"
    )


def _line(it: Stay, names: Mapping[tuple[float, float | None], str]) -> str:
    y = BAR + (it.line + 1) * HIGH - 5
    return f'<g class="k {names[it.begin, it.end]}">{"".join(_run(run, y) for run in it.row)}</g>'


def _run(run: Run, y: float) -> str:
    kind = COLOURS.get(run.colour, "t") + (" s" if run.bold else "")
    # With its length a row stays in its columns whatever font a reader has.
    long = _number(len(run.text) * WIDE)
    x = _number(MARGIN + run.column * WIDE)
    return f'<text class="{kind}" x="{x}" y="{_number(y)}" textLength="{long}">{escape(run.text, quote=False)}</text>'


def _share(at: float, whole: float) -> str:
    return f"{_number(100 * at / whole)}%"


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
