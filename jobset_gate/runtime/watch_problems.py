"""What may be wrong with what a server sends, for counters and logs."""

from __future__ import annotations

import enum
from collections.abc import Callable
from dataclasses import dataclass

from jobset_gate.kube.resources import Resource


class WatchProblemKind(enum.StrEnum):
    """The values are fit for a metric's label."""

    TORN = "torn"  # a line that is no JSON
    TOO_LONG = "too_long"
    UNREADABLE = "unreadable"  # JSON, but not an event or not an object of this resource's form
    UNCONVERTIBLE = "unconvertible"  # convert() raised
    ERROR_EVENT = "error_event"
    EXPIRED = "expired"
    SILENT = "silent"
    WATCH_FAILED = "watch_failed"
    LIST_FAILED = "list_failed"


@dataclass(frozen=True, slots=True)
class WatchProblem:
    """One thing that went wrong and was dealt with; `detail` is for people."""

    kind: WatchProblemKind
    resource: Resource
    detail: str


OnWatchProblem = Callable[[WatchProblem], None]
