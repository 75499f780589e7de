"""The window of a timeline: from and to, in seconds after the first pod, in the address of a gang's page. Pure."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from math import ceil
from typing import Final

from controllers.statuspage.pods import PodList
from jobset_gate.timeline.svg import LEFT, RIGHT, WIDTH, Drawing, Window

NARROWEST: Final = 4
"""Seconds."""


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
