"""From the last member created to the last one bound, in the three ways, on the real scheduler."""

from __future__ import annotations

import asyncio
import math
import sys
import tempfile
from collections import defaultdict
from contextlib import AsyncExitStack
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from bench import intervals
from bench.child import Child
from bench.groups import cluster, plan
from bench.groups.cluster import GroupBenchCluster
from bench.groups.plan import TITLES, LoadShape, Placer
from bench.groups.request_counts import RequestCounts, count_requests
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import geometric_mean, median, percentile

NAME = "placing"
PACKAGE = "bench.groups.children"
TIMEOUT = 900.0
LIMIT = 1.1
"""How long ours may take, in times of the floor."""
LEAST = 0.001
"""Seconds. A busy machine may show the watcher the last pod bound before the loader its creation."""


@dataclass(frozen=True, slots=True)
class PlacementRun:
    """One way, once. Seconds."""

    created: float
    """From the first member asked for to the last one there."""
    bound: float
    """From the last member there to the last one bound."""
    groups: list[float]
    """The same for each group."""
    counted: RequestCounts | None = None
    cpu: float = 0.0
    peak: float = 0.0
    """MiB."""
    webhook_cpu: float = 0.0
    decisions: dict[str, float] | None = None

    @property
    def whole(self) -> float:
        return self.created + self.bound


async def run(scale: Scale, runs: int) -> list[ResultTable]:
    """A table for each shape."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jobset-gate-bench-")))
        there = stack.enter_context(cluster.prepared(scale, folder))
        children = [await _child(stack, name) for name in ("load", "watch", "webhook")]
        stage = PlacementBenchmark(there, *children, quiet=scale.measures)
        await stage.prepare()
        return [await _shape(stage, shape, runs) for shape in plan.shapes(scale)]


async def _child(stack: AsyncExitStack, module: str) -> Child:
    return await stack.enter_async_context(Child(module, PACKAGE))


async def _shape(stage: PlacementBenchmark, shape: LoadShape, runs: int) -> ResultTable:
    found: dict[Placer, list[PlacementRun]] = defaultdict(list)
    # The first pods of a fresh API server take a fifth longer: its heap grows, and the machine gives it the memory page
    # by page. The first run would pay for it.
    _print_run(shape, "not counted", await stage.measure(Placer.OURS, shape))
    for way in plan.order(runs):
        one = await stage.measure(way, shape)
        found[way].append(one)
        _print_run(shape, TITLES[way], one)
    return table(shape, found)


def _print_run(shape: LoadShape, what: str, run: PlacementRun) -> None:
    print(f"  {shape}, {what}: {run.bound:.2f} s", file=sys.stderr, flush=True)


class PlacementBenchmark:
    """The processes that stay from run to run."""

    def __init__(self, there: GroupBenchCluster, loader: Child, watcher: Child, webhook: Child, *, quiet: bool) -> None:
        self._ground, self._loader, self._watcher, self._webhook = there, loader, watcher, webhook
        self._namespaces, self._quiet = count(), quiet

    async def prepare(self) -> None:
        admin = self._ground.kubeconfigs["admin"]
        await self._loader.call("run", kubeconfig=admin)
        await self._watcher.call("run", kubeconfig=admin)
        await self._webhook.call("run", kubeconfig=admin)

    async def measure(self, way: Placer, shape: LoadShape) -> PlacementRun:
        """One run in a namespace of its own, cleared away afterwards."""
        namespace = f"run-{next(self._namespaces)}"
        await self._ground.open_namespace(namespace)
        async with AsyncExitStack() as stack:
            controller = await self._start_controller(way, shape, namespace, stack)
            found = await self._place(way, shape, namespace, controller)
        await self._ground.clear(namespace, wait=self._quiet)
        return found

    async def _start_controller(
        self, way: Placer, shape: LoadShape, namespace: str, stack: AsyncExitStack
    ) -> Child | None:
        if way is Placer.FREE:
            return None
        controller = await _child(stack, "floor" if way is Placer.FLOOR else "controller")
        account = self._ground.kubeconfigs["floor" if way is Placer.FLOOR else "ours"]
        more = {"quorum": shape.pods} if way is Placer.FLOOR else {}
        await controller.call("run", kubeconfig=account, namespace=namespace, **more)
        return controller

    async def _used(self, controller: Child | None) -> dict[str, Any]:
        return {"cpu": 0.0, "peak": 0.0} if controller is None else await controller.call("figures")

    async def _place(self, way: Placer, shape: LoadShape, namespace: str, controller: Child | None) -> PlacementRun:
        what: dict[str, Any] = {"namespace": namespace, "way": way, "groups": shape.groups, "pods": shape.pods}
        await self._watcher.call("begin", namespace=namespace)
        used = (await self._webhook.call("figures"))["cpu"]
        before = await self._used(controller)
        begun = await self._loader.call("begin", timeout=TIMEOUT, **what)
        bound = asyncio.create_task(self._watcher.call("until", timeout=TIMEOUT, count=shape.size))
        last = (await self._loader.call("finish", timeout=TIMEOUT, **what))["at"]
        ends: dict[str, float] = (await bound)["last"]
        figures = await self._used(controller)
        used = (await self._webhook.call("figures"))["cpu"] - used
        return PlacementRun(
            created=max(last) - begun["began"],
            bound=max(ends.values()) - max(last),
            groups=[ends[plan.group_name(group)] - at for group, at in enumerate(last)],
            counted=await self._counted(way, shape, namespace),
            cpu=figures["cpu"] - before["cpu"],
            peak=figures["peak"],
            webhook_cpu=used,
            decisions=figures.get("decisions"),
        )

    async def _counted(self, way: Placer, shape: LoadShape, namespace: str) -> RequestCounts | None:
        if way is Placer.FREE:
            return None
        account = "floor" if way is Placer.FLOOR else "ours"
        requests = await asyncio.to_thread(self._ground.requests, account, namespace)
        return count_requests(requests, shape.size, map(plan.group_name, range(shape.groups)))


# --- The table -------------------------------------------------------------------------------------------------------


COLUMNS = (
    "way", "bound s", "least", "most", "a group p50", "p99", "created s", "whole s", "CPU s", "peak MiB", "PATCHes",
    "decided", "writes",
)  # fmt: skip


def table(shape: LoadShape, found: dict[Placer, list[PlacementRun]]) -> ResultTable:
    """Medians over the runs. The ratio to the floor is that of the geometric means: it uses every run, and one that a
    busy machine has slowed down counts no more than one that it has not.
    """
    ours, floor, free = found[Placer.OURS], found[Placer.FLOOR], found[Placer.FREE]
    to_floor = [_ratio(one.bound, other.bound) for one, other in zip(ours, floor, strict=True)]
    notes = [
        _run_by_run(to_floor),
        _to_free(ours, free),
        f"webhook: {median([one.webhook_cpu for one in ours]):.2f} s of CPU for {shape.size:,} pods, outside the clock",
        _decisions([one.decisions for one in ours if one.decisions]),
        "bound: from the last member of all groups there to the last pod bound, medians; a group: the same for one",
        "PATCHes of a pod, decision writes of a group, and all writes of a group other than to pods",
    ]
    counts = [one.counted for one in ours if one.counted is not None]
    targets = [
        ResultTarget(f"{shape}: (c)/(b)", geometric_mean(to_floor), LIMIT),
        ResultTarget(f"{shape}: PATCHes of one pod", max(one.most_patches_of_a_pod for one in counts), 1),
        ResultTarget(f"{shape}: decision writes of one group", max(one.most_decisions_of_a_group for one in counts), 1),
    ]
    return ResultTable(
        name=f"{NAME} {shape}",
        title=f"{shape} pods: groups placed by kube-scheduler, {len(ours)} runs of each way",
        columns=COLUMNS,
        rows=[_row(way, found[way]) for way in Placer],
        targets=targets,
        notes=[note for note in notes if note],
        samples={f"{way} bound": [one.bound for one in found[way]] for way in Placer},
    )


def _row(way: Placer, runs: list[PlacementRun]) -> list[Cell]:
    bounds = [one.bound for one in runs]
    each = [one for run in runs for one in run.groups]
    counts = [one.counted for one in runs if one.counted is not None]
    return [
        TITLES[way],
        median(bounds),
        min(bounds),
        max(bounds),
        max(0.0, percentile(each, 50)),
        max(0.0, percentile(each, 99)),
        median([one.created for one in runs]),
        median([one.whole for one in runs]),
        median([one.cpu for one in runs]) if counts else None,
        max(one.peak for one in runs) if counts else None,
        max(one.patches_per_pod for one in counts) if counts else None,
        max(one.decisions_per_group for one in counts) if counts else None,
        max(one.writes_per_group for one in counts) if counts else None,
    ]


def _ratio(ours: float, other: float) -> float:
    return max(ours, LEAST) / max(other, LEAST)


def _run_by_run(ratios: list[float]) -> str:
    it = intervals.of(ratios)
    sure = "too few runs for an interval"
    if it.low is not None:
        sure = f"the true one within {it.low:.3f} and {it.high:.3f} (95 %)"
    return f"(c)/(b), run by run: median {it.median:.3f}, {min(ratios):.3f} to {max(ratios):.3f}; {sure}"


def _to_free(ours: list[PlacementRun], free: list[PlacementRun]) -> str:
    whole = median([one.whole / other.whole for one, other in zip(ours, free, strict=True)])
    bound = median([_ratio(one.bound, other.bound) for one, other in zip(ours, free, strict=True)])
    return f"(c)/(a): {bound:.2f} from the last member on, {whole:.2f} from the first"


def _decisions(found: list[dict[str, float]]) -> str:
    """Percentiles as a histogram can tell them: no more than the bound of a bucket."""
    sums: dict[float, float] = defaultdict(float)
    for buckets in found:
        for edge, many in buckets.items():
            sums[float(edge)] += many
    total = sums.get(math.inf, 0.0)
    if not total:
        return "no decision was timed"
    words = []
    for percent in (50, 99, 100):
        bound = next(edge for edge in sorted(sums) if sums[edge] >= total * percent / 100)
        words.append(f"p{percent} <= {bound * 1000:g} ms")
    return f"{total:,.0f} decisions: {', '.join(words)}"
