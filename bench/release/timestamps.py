"""From what `kubectl logs --prefix --timestamps` prints to the moments at which containers wrote their lines.

The container runtime stamps each line, with nanoseconds, by the clock of the pod's node.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

NANO = 1_000_000_000
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_LINE = re.compile(r"\[pod/(?P<pod>[^/\]]+)/(?P<container>[^\]]+)\] (?P<when>\S+)")
_WHEN = re.compile(r"(?P<seconds>\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.(?P<part>\d{1,9}))?(?P<zone>Z|[+-]\d\d:\d\d)")

Lines = Mapping[tuple[str, str], tuple[int, int]]
"""By pod and container: when it wrote its first and its last line, in nanoseconds since 1970."""


class IncompleteLogs(Exception):
    """Some container has not written its line."""


@dataclass(frozen=True, slots=True)
class GangTimestamps:
    """Of one gang, sorted: when its barriers started, when they had heard (a barrier's last line says that), and when
    its main containers wrote their first lines.
    """

    starts: tuple[int, ...]
    ends: tuple[int, ...]
    mains: tuple[int, ...]

    @property
    def after(self) -> tuple[float, ...]:
        """Each main's first line, in seconds since the last barrier's start."""
        return tuple((main - self.starts[-1]) / NANO for main in self.mains)

    @property
    def released(self) -> float:
        """Seconds from the last barrier's start until every barrier had heard."""
        return (self.ends[-1] - self.starts[-1]) / NANO

    @property
    def gathering(self) -> float:
        """Seconds from the first barrier's start to the last one's."""
        return (self.starts[-1] - self.starts[0]) / NANO


def lines_of(text: str) -> Lines:
    """The earliest and the latest line of each container; lines that are none of a container are left out."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for line in text.splitlines():
        matched = _LINE.match(line)
        when = stamp(matched["when"]) if matched else None
        if matched is None or when is None:
            continue
        key = (matched["pod"], matched["container"])
        first, last = found.get(key, (when, when))
        found[key] = min(when, first), max(when, last)
    return found


def stamp(text: str) -> int | None:
    """RFC 3339 with up to nine digits of a second, as nanoseconds since 1970; None if it is none."""
    matched = _WHEN.fullmatch(text)
    if matched is None:
        return None
    whole = datetime.fromisoformat(matched["seconds"] + matched["zone"].replace("Z", "+00:00"))
    return (whole - _EPOCH) // timedelta(seconds=1) * NANO + int((matched["part"] or "").ljust(9, "0"))


def of_gang(lines: Lines, *, barrier: str, main: str, pods: int) -> GangTimestamps:
    """The gang's moments. Raises Incomplete unless exactly so many pods have both."""
    barriers = {pod: its for (pod, container), its in lines.items() if container == barrier}
    mains = {pod: first for (pod, container), (first, _) in lines.items() if container == main}
    if len(barriers) != pods or barriers.keys() != mains.keys():
        raise IncompleteLogs(f"{len(barriers)} barriers and {len(mains)} main containers of {pods} have written a line")
    starts, ends = zip(*barriers.values(), strict=True)
    return GangTimestamps(tuple(sorted(starts)), tuple(sorted(ends)), tuple(sorted(mains.values())))
