"""What the SVG of a timeline is made of: elements as text, the time axis, and one style sheet for light and dark."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import ceil

from jobset_gate.objects import terminal_text
from jobset_gate.timeline.model import Activity

_ESCAPED = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"}
_STEPS = (1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10_800, 21_600, 43_200, 86_400)
MOST_MARKS = 10
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


def text(value: object) -> str:
    """Safe as the content of an element or the value of an attribute; controls are shown, and turn no text around."""
    legal = (it for it in terminal_text.lines(str(value)) if it not in "\ufffe\uffff")
    return "".join(_ESCAPED.get(it, it) for it in legal)


def element(name: str, content: str | Iterable[str] = "", /, **attributes: object) -> str:
    """`element("rect", x=1, class_="held")`; `content` is SVG already. Numbers keep one decimal."""
    given = "".join(f' {_name(key)}="{_value(value)}"' for key, value in attributes.items() if value is not None)
    inner = content if isinstance(content, str) else "".join(content)
    return f"<{name}{given}>{inner}</{name}>" if inner else f"<{name}{given}/>"


def rect(x: float, y: float, width: float, height: float, class_: str) -> str:
    """A box; one that would be too thin to be seen is given half a point."""
    return element("rect", x=x, y=y, width=max(0.5, width), height=height, class_=class_)


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> str:
    return element("line", x1=x1, y1=y1, x2=x2, y2=y2, class_=class_)


def label(x: float, y: float, words: str, class_: str, anchor: str | None = None) -> str:
    """A line of text."""
    return element("text", text(words), x=x, y=y, class_=class_, text_anchor=anchor)


def shorten(words: str, most: int) -> str:
    """Cut in the middle: names differ at their ends."""
    if len(words) <= most:
        return words
    left = (most - 1) // 2
    return f"{words[:left]}\u2026{words[len(words) - (most - 1 - left) :]}"


def _name(key: str) -> str:
    return key.rstrip("_").replace("_", "-")


def _value(value: object) -> str:
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else text(value)


@dataclass(frozen=True, slots=True)
class TimeAxis:
    """Moments from `origin` to `until`, between these places."""

    origin: float
    until: float
    left: float
    right: float
    zero: float | None = None
    """From where the marks are counted; None: `origin`."""

    @property
    def seconds(self) -> float:
        """How long it is; at least one."""
        return max(1.0, self.until - self.origin)

    def place(self, moment: float) -> float:
        """Where it is; what lies beyond an end, at that end."""
        share = (moment - self.origin) / self.seconds
        return self.left + (self.right - self.left) * min(1.0, max(0.0, share))

    def shows(self, start: float, end: float | None = None) -> bool:
        """Whether some of it lies between the ends."""
        return start <= self.origin + self.seconds and (start if end is None else end) >= self.origin

    def marks(self) -> tuple[float, ...]:
        """Round moments, at most ten and one."""
        days = 86_400 * (int(self.seconds) // (MOST_MARKS * 86_400) + 1)
        step = next((it for it in _STEPS if self.seconds / it <= MOST_MARKS), days)
        zero = self.origin if self.zero is None else self.zero
        first, last = (self.origin - zero) / step, (self.origin + self.seconds - zero) / step
        return tuple(zero + number * step for number in range(ceil(first), int(last) + 1))


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
