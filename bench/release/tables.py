"""The tables: from single runs to medians with their intervals, and the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Final

from bench import intervals
from bench.intervals import Interval
from bench.release import apiwrites, goals
from bench.release.methods import FLOOR, METHODS, titled
from bench.release.published_figures import PEERS
from bench.release.results import ReleaseRun, Results, StartSkew, WaitingCost
from bench.report import Cell, ResultTable

FIGURES: Final[dict[str, Callable[[ReleaseRun], float]]] = {
    "all released": lambda run: run.released,
    "first": lambda run: run.first,
    "median": lambda run: run.median,
    "last": lambda run: run.last,
    "skew": lambda run: run.skew,
}


def every(results: Results) -> list[ResultTable]:
    """All tables for which something was measured."""
    tables = [*(speed(results, pods) for pods in results.sizes), pairs(results)]
    tables += [writes(results, pods) for pods in results.sizes]
    return [table for table in (*tables, costs(results), skews(results)) if table.rows]


def speed(results: Results, pods: int) -> ResultTable:
    """Of one size: each way's figures, then what is known from elsewhere."""
    rows: list[Sequence[Cell]] = []
    for way in METHODS:
        runs = results.of(way, pods).values()
        if runs:
            cells = (interval_text(intervals.of([figure(run) for run in runs])) for figure in FIGURES.values())
            rows.append([titled(way), len(runs), *cells])
    peers = [peer for peer in PEERS if peer.pods == pods]
    rows += [[f"{peer.title} *", None, None, None, None, peer.last, None] for peer in peers]
    return ResultTable(
        f"speed-{pods}",
        f"{pods} pods on one node: seconds from the last barrier's start",
        ["way", "runs", *FIGURES],
        rows,
        notes=[f"* {peer.source}" for peer in peers],
    )


def pairs(results: Results) -> ResultTable:
    """Of runs made one right after the other: by how much the ways differ."""
    rows: list[Sequence[Cell]] = [
        [
            one.goal.text,
            one.pods,
            one.found.runs,
            interval_text(one.found, one.goal.unit),
            _asked(one.goal),
            one.verdict,
        ]
        for one in goals.reached(results)
    ]
    title = "The ways compared, run by run"
    return ResultTable("pairs", title, ["what", "pods", "pairs", "median and interval", "to reach", ""], rows)


def writes(results: Results, pods: int) -> ResultTable:
    """Of one size: what our controller writes for one gang from its making to its last start."""
    rows: list[Sequence[Cell]] = []
    for way in METHODS:
        found = apiwrites.ours(results.pairs(way, FLOOR, pods)) if way.has_controller else {}
        if found:
            rows.append([titled(way), *(_count(found[name]) for name in (*apiwrites.OURS, apiwrites.ALL))])
    peers = [peer for peer in PEERS if peer.pods == pods] if rows else []
    rows += [[f"{peer.title} *", *(None for _ in apiwrites.OURS), peer.writes] for peer in peers]
    columns = ["way", *apiwrites.OURS, apiwrites.ALL]
    return ResultTable(f"writes-{pods}", f"API writes for one gang of {pods} pods, beyond the floor's", columns, rows)


def costs(results: Results) -> ResultTable:
    """What a barrier uses while it waits, and what is left of it afterwards."""
    rows: list[Sequence[Cell]] = [
        [titled(way), cost.pods, cost.millicores, cost.rss, cost.working_set, _left(cost)]
        for way in METHODS
        for cost in results.costs
        if cost.way == way.key
    ]
    if rows:
        rows += [[f"{peer.title} *", peer.pods, None, peer.memory, None, peer.left] for peer in PEERS]
    columns = ["way", "pods", "CPU, millicores", "anonymous memory, MiB", "working set, MiB", "after the release"]
    return ResultTable("costs", "What the barrier costs one pod while it waits", columns, rows)


def skews(results: Results) -> ResultTable:
    """Start skew over two nodes, without and with prefetch."""
    rows: list[Sequence[Cell]] = []
    for prefetch in (False, True):
        found = [skew for skew in results.skews if skew.prefetch is prefetch]
        if found:
            rows.append(["with prefetch" if prefetch else "without prefetch", len(found), *_skewed(found)])
    columns = ["gangs over two nodes", "runs", "start skew, s", "first barrier to first main, s"]
    title = "Start skew where one of two nodes has yet to unpack the main image"
    return ResultTable(
        "skews", title, columns, rows, notes=[f"The image: {results.image}."] if results.image and rows else []
    )


def interval_text(found: Interval, unit: str = "") -> str:
    """`3.77 (3.41 to 4.02)`."""
    ends = "" if found.low is None or found.high is None else f" ({found.low:.2f} to {found.high:.2f})"
    return f"{found.median:.2f}{unit}{ends}"


def _skewed(found: Iterable[StartSkew]) -> list[str]:
    both = [(skew.skew, skew.waited) for skew in found]
    return [interval_text(intervals.of(values)) for values in zip(*both, strict=True)]


def _asked(goal: goals.Goal) -> str:
    if goal.limit is None:
        return ""
    return f"at {'least' if goal.at_least else 'most'} {goal.limit:g}{goal.unit}"


def _count(value: float) -> Cell:
    return int(value) if value == int(value) else value


def _left(cost: WaitingCost) -> str:
    if cost.left is None:
        return "not looked at"
    return "nothing" if cost.left == 0 else f"{cost.left} of {cost.pods} barriers still there"
