"""From what `kubectl logs --prefix --timestamps` prints to the moments at which containers wrote their first lines.

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

FirstLines = Mapping[tuple[str, str], int]
"""By pod and container: when it wrote its first line, in nanoseconds since 1970."""


class Incomplete(Exception):
    """Some container has not written its line."""


@dataclass(frozen=True, slots=True)
class Moments:
    """Of one gang: when its barriers started and when its main containers wrote their first lines, sorted."""

    starts: tuple[int, ...]
    mains: tuple[int, ...]

    @property
    def after(self) -> tuple[float, ...]:
        """Each main's first line, in seconds since the last barrier's start."""
        return tuple((main - self.starts[-1]) / NANO for main in self.mains)

    @property
    def gathering(self) -> float:
        """Seconds from the first barrier's start to the last one's."""
        return (self.starts[-1] - self.starts[0]) / NANO


def first_lines(text: str) -> FirstLines:
    """The earliest line of each container; lines that are none of a container are left out."""
    found: dict[tuple[str, str], int] = {}
    for line in text.splitlines():
        matched = _LINE.match(line)
        when = stamp(matched["when"]) if matched else None
        if matched is None or when is None:
            continue
        key = (matched["pod"], matched["container"])
        found[key] = min(when, found.get(key, when))
    return found


def stamp(text: str) -> int | None:
    """RFC 3339 with up to nine digits of a second, as nanoseconds since 1970; None if it is none."""
    matched = _WHEN.fullmatch(text)
    if matched is None:
        return None
    whole = datetime.fromisoformat(matched["seconds"] + matched["zone"].replace("Z", "+00:00"))
    return (whole - _EPOCH) // timedelta(seconds=1) * NANO + int((matched["part"] or "").ljust(9, "0"))


def of_gang(lines: FirstLines, *, barrier: str, main: str, pods: int) -> Moments:
    """The gang's moments. Raises Incomplete unless exactly so many pods have both."""
    starts = {pod: when for (pod, container), when in lines.items() if container == barrier}
    mains = {pod: when for (pod, container), when in lines.items() if container == main}
    if len(starts) != pods or starts.keys() != mains.keys():
        raise Incomplete(f"{len(starts)} barriers and {len(mains)} main containers of {pods} have written a line")
    return Moments(tuple(sorted(starts.values())), tuple(sorted(mains.values())))
