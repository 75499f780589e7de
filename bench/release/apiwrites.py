"""API writes, from the API server's own metrics: `apiserver_request_total` before and after a gang's life.

Others write, too: kubelet, scheduler, Job controller, the JobSet controller. The floor's gang of the same run has all
that and nothing of ours, so the difference between two gangs is ours. One API server's metrics tell its own requests.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from bench.release.results import ReleaseRun

METRIC = "apiserver_request_total"
VERBS = frozenset(("POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"))
BACKGROUND = frozenset(("leases", "subjectaccessreviews", "selfsubjectaccessreviews", "tokenreviews", "nodes"))
"""What clusters write all the time, whether or not there is a gang."""

OURS = ("POST configmaps", "PUT configmaps", "PATCH pods", "APPLY jobsets/status", "POST events")
"""What our controller writes for a gang; kubelets write `pods/status`, never `pods`."""

ALL = "all of these"

_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')


def written(metrics: str) -> Counter[str]:
    """From /metrics: what was written since the API server began, "PATCH pods/status" -> how often; no dry runs."""
    total: Counter[str] = Counter()
    for labels, value in _samples(metrics):
        if labels.get("verb") in VERBS and labels.get("resource") not in BACKGROUND and not labels.get("dry_run"):
            total[_name(labels)] += int(value)
    return total


def between(before: Counter[str], after: Counter[str]) -> dict[str, int]:
    """What was written meanwhile."""
    return {name: count - before[name] for name, count in sorted(after.items()) if count > before[name]}


def ours(pairs: Sequence[tuple[ReleaseRun, ReleaseRun]]) -> dict[str, float]:
    """By pairs with the floor's runs: the median difference of each kind of write that is ours, and of all of them."""
    if not pairs:
        return {}
    found = {name: median(_count(one.writes, name) - _count(low.writes, name) for one, low in pairs) for name in OURS}
    found[ALL] = median(_sum(one.writes) - _sum(low.writes) for one, low in pairs)
    return found


def _count(writes: Mapping[str, int], name: str) -> int:
    return writes.get(name, 0)


def _sum(writes: Mapping[str, int]) -> int:
    return sum(_count(writes, name) for name in OURS)


def _name(labels: Mapping[str, str]) -> str:
    sub = labels.get("subresource")
    return f"{labels['verb']} {labels.get('resource', '')}" + (f"/{sub}" if sub else "")


def _samples(metrics: str) -> Iterator[tuple[dict[str, str], float]]:
    for line in metrics.splitlines():
        if line.startswith(METRIC + "{"):
            inside, _, value = line[len(METRIC) + 1 :].rpartition("} ")
            yield dict(_LABEL.findall(inside)), float(value)
