"""Requests of the clients that admit groups, counted from the API server's audit log."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tests.plane.audit import AuditedRequest


@dataclass(frozen=True, slots=True)
class RequestCounts:
    """Per pod and per group."""

    patches_per_pod: float
    most_patches_of_a_pod: int
    decisions_per_group: float
    """Writes to its PodGroup (or record) before the first of its pods was opened."""
    most_decisions_of_a_group: int
    writes_per_group: float
    """Of everything but pods: decision, satisfied, status, events."""
    refused: int


def count_requests(requests: Sequence[AuditedRequest], pods: int, groups: Iterable[str]) -> RequestCounts:
    """All requests of one run by one account, in the order of the answers."""
    names = list(groups)
    writes = [one for one in requests if one.verb in ("create", "update", "patch", "delete")]
    done = [one for one in writes if one.code < 300]
    opened = [one for one in done if one.resource == "pods"]
    patches = Counter(one.name for one in opened)
    before: Counter[str] = Counter()
    seen: set[str] = set()
    for one in done:
        if one.resource == "pods":
            seen.add(one.name.rpartition("-")[0])
        elif one.resource == "podgroups" and one.name not in seen:
            before[one.name] += 1
    return RequestCounts(
        patches_per_pod=len(opened) / pods,
        most_patches_of_a_pod=max(patches.values(), default=0),
        decisions_per_group=sum(before[name] for name in names) / len(names),
        most_decisions_of_a_group=max((before[name] for name in names), default=0),
        writes_per_group=(len(done) - len(opened)) / len(names),
        refused=len(writes) - len(done),
    )
