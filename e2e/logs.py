"""When containers started, by their own first lines: stamped to the nanosecond, where statuses have whole seconds."""

import re
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from e2e.gangs import PRINTS_START
from jobset_gate import names

_LINE: Final = re.compile(r"^\[pod/(?P<pod>[^/]+)/(?P<container>[^\]]+)\] (?P<at>\S+) (?P<text>.*)$")


@dataclass(frozen=True, slots=True)
class LogLine:
    """One line that a container has written."""

    pod: str
    container: str
    at: float
    """Seconds since the epoch."""
    text: str


def parse(text: str) -> list[LogLine]:
    """What `kubectl logs --prefix --timestamps` says; other lines (kubectl's own) are left out."""
    found = (_LINE.match(line) for line in text.splitlines())
    return [
        LogLine(line["pod"], line["container"], datetime.fromisoformat(line["at"]).timestamp(), line["text"])
        for line in found
        if line
    ]


def first_lines(lines: Iterable[LogLine], container: str) -> dict[str, float]:
    """Per pod the moment of the first line of that container."""
    found: defaultdict[str, list[float]] = defaultdict(list)
    for line in lines:
        if line.container == container:
            found[line.pod].append(line.at)
    return {pod: min(moments) for pod, moments in found.items()}


def check_all_started_before_any_ran(lines: Iterable[LogLine], expected: int) -> float:
    """The promise itself, from the logs of a gang's pods alone. Returns the seconds from last barrier to last main.

    Raises AssertionError when a main container spoke before the last of `expected` barriers did.
    """
    known = list(lines)
    barriers = first_lines(known, names.BARRIER_CONTAINER)
    mains = first_lines((line for line in known if line.text == PRINTS_START), "main")
    assert len(barriers) == expected, f"{len(barriers)} of {expected} barriers have spoken"
    assert len(mains) == expected, f"{len(mains)} of {expected} main containers have spoken"
    last = max(barriers.values())
    early = {pod: last - at for pod, at in mains.items() if at < last}
    assert not early, f"main containers that ran so many seconds before the last pod was there: {early}"
    return max(mains.values()) - last
