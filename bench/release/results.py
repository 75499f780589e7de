"""What was measured, as it is kept in a JSON file: single runs, from which every table and the picture are made."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench.release.methods import ReleaseMethod


class ReleaseRun(msgspec.Struct, frozen=True, kw_only=True):
    """One gang of one way. Seconds; `mains` count from the last barrier's start."""

    number: int
    """Runs of one number are a pair: made one right after the other, in random order."""
    way: str
    pods: int
    gathering: float
    """From the first barrier's start to the last one's."""
    released: float
    """From the last barrier's start until every barrier had heard: what comes then is the kubelet's."""
    mains: tuple[float, ...]
    writes: Mapping[str, int]
    """Writes to the API server meanwhile, of all clients: "PATCH pods" -> how often."""

    @property
    def first(self) -> float:
        return self.mains[0]

    @property
    def median(self) -> float:
        return median(self.mains)

    @property
    def last(self) -> float:
        return self.mains[-1]

    @property
    def skew(self) -> float:
        return self.last - self.first


class WaitingCost(msgspec.Struct, frozen=True, kw_only=True):
    """What the barriers of one waiting gang used, each pod on average."""

    way: str
    pods: int
    seconds: float
    millicores: float
    rss: float
    """MiB of anonymous memory."""
    working_set: float
    """MiB, page cache included."""
    left: int | None
    """Barriers' containers that the kubelet still knew after the release; None: nobody has looked."""


class StartSkew(msgspec.Struct, frozen=True, kw_only=True):
    """One gang whose main image is unpacked on one node and not on the other."""

    number: int
    prefetch: bool
    waited: float
    """Seconds from the first barrier's start to the release, as seen by the first main container."""
    warm: tuple[float, ...]
    """First lines on the node that has the image, in seconds since the gang's first one."""
    cold: tuple[float, ...]

    @property
    def skew(self) -> float:
        return max(*self.warm, *self.cold) - min(*self.warm, *self.cold)


class FailedRun(msgspec.Struct, frozen=True, kw_only=True):
    """A gang that did not start in time or whose lines were missing: it is reported, not left out in silence."""

    number: int
    way: str
    pods: int
    why: str


class Results(msgspec.Struct, kw_only=True):
    """One measurement."""

    machine: dict[str, Any]
    cluster: dict[str, Any]
    command: str
    seed: int
    seconds: float = 0.0
    load: float = 0.0
    """The machine's load when it ended."""
    runs: list[ReleaseRun] = []
    costs: list[WaitingCost] = []
    skews: list[StartSkew] = []
    image: str = ""
    """The image of the prefetch part, in words."""
    failures: list[FailedRun] = []
    notes: list[str] = []
    """What was not measured, and why."""

    @property
    def sizes(self) -> list[int]:
        return sorted({run.pods for run in self.runs})

    def of(self, way: ReleaseMethod, pods: int) -> dict[int, ReleaseRun]:
        """This way's runs with so many pods, by number."""
        return {run.number: run for run in self.runs if run.way == way.key and run.pods == pods}

    def pairs(self, one: ReleaseMethod, other: ReleaseMethod, pods: int) -> list[tuple[ReleaseRun, ReleaseRun]]:
        """The runs of both ways that were made one right after the other."""
        first, second = self.of(one, pods), self.of(other, pods)
        return [(first[number], second[number]) for number in sorted(first.keys() & second.keys())]


def write(results: Results, file: Path) -> None:
    """Whole or not at all: a measurement may be interrupted at any moment."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_name(file.name + ".new")
    draft.write_bytes(msgspec.json.format(msgspec.json.encode(results), indent=1) + b"\n")
    draft.replace(file)


def read(file: Path) -> Results:
    """What `write` wrote."""
    return msgspec.json.decode(file.read_bytes(), type=Results)
