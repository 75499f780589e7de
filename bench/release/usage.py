"""What barriers use while they wait, as the kubelet reads it from their cgroups (/stats/summary)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from bench.release.timestamps import NANO, stamp
from jobset_gate import names

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Usage:
    """Of one container: CPU nanoseconds since it began, at that moment; memory in bytes."""

    at: int
    cpu: int
    rss: int
    working_set: int


@dataclass(frozen=True, slots=True)
class Average:
    """Of one container on average."""

    seconds: float
    millicores: float
    rss: float
    working_set: float


def of_barriers(summary: Mapping[str, Any], namespace: str) -> dict[str, Usage]:
    """By pod: its barrier, if that runs and has been looked at."""
    found = {}
    for pod, container in _containers(summary, namespace):
        if container["name"] == names.BARRIER_CONTAINER and (usage := _usage(container)) is not None:
            found[pod] = usage
    return found


def average(before: Mapping[str, Usage], after: Mapping[str, Usage]) -> Average:
    """Of the containers that were looked at twice at different moments; raises ValueError if there is none."""
    pairs = [(before[pod], after[pod]) for pod in before.keys() & after.keys() if after[pod].at > before[pod].at]
    if not pairs:
        raise ValueError("no container was looked at twice")
    return Average(
        seconds=fmean((late.at - early.at) / NANO for early, late in pairs),
        millicores=fmean((late.cpu - early.cpu) / (late.at - early.at) * 1000 for early, late in pairs),
        rss=fmean(late.rss / MIB for _, late in pairs),
        working_set=fmean(late.working_set / MIB for _, late in pairs),
    )


def _containers(summary: Mapping[str, Any], namespace: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for pod in summary.get("pods") or ():
        if pod["podRef"]["namespace"] == namespace:
            for container in pod.get("containers") or ():
                yield pod["podRef"]["name"], container


def _usage(container: Mapping[str, Any]) -> Usage | None:
    cpu, memory = container.get("cpu") or {}, container.get("memory") or {}
    at = stamp(cpu.get("time") or "")
    if at is None or "usageCoreNanoSeconds" not in cpu or "workingSetBytes" not in memory:
        return None
    return Usage(at, cpu["usageCoreNanoSeconds"], memory.get("rssBytes") or 0, memory["workingSetBytes"])
