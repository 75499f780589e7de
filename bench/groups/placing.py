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
from bench.groups import ground, plan
from bench.groups.counted import Counted, counted
from bench.groups.ground import Ground
from bench.groups.plan import TITLES, Shape, Way
from bench.report import Cell, Table, Target
from bench.scale import Scale
from bench.stats import geometric_mean, median, percentile

NAME = "placing"
PACKAGE = "bench.groups.children"
PATIENCE = 900.0
LIMIT = 1.1
"""How long ours may take, in times of the floor."""


@dataclass(frozen=True, slots=True)
class Run:
    """One way, once. Seconds."""

    created: float
    """From the first member asked for to the last one there."""
    bound: float
    """From the last member there to the last one bound."""
    groups: list[float]
    """The same of each group by itself."""
    counted: Counted | None = None
    cpu: float = 0.0
    peak: float = 0.0
    """MiB."""
    door_cpu: float = 0.0
    decisions: dict[str, float] | None = None

    @property
    def whole(self) -> float:
        return self.created + self.bound


async def run(scale: Scale, runs: int) -> list[Table]:
    """A table for each shape."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="jobset-gate-bench-")))
        there = stack.enter_context(ground.prepared(scale, folder))
        stage = Stage(there, *[await _child(stack, name) for name in ("load", "watch", "door")])
        await stage.prepare(folder)
        return [await _shape(stage, shape, runs) for shape in plan.shapes(scale)]


async def _child(stack: AsyncExitStack, module: str) -> Child:
    return await stack.enter_async_context(Child(module, PACKAGE))


async def _shape(stage: Stage, shape: Shape, runs: int) -> Table:
    found: dict[Way, list[Run]] = defaultdict(list)
    # The first pods of a fresh API server take a fifth longer: its heap grows, and the machine gives it the memory page
    # by page. Whoever came first would pay for it.
    _tell(shape, "not counted", await stage.measure(Way.OURS, shape))
    for way in plan.order(runs):
        one = await stage.measure(way, shape)
        found[way].append(one)
        _tell(shape, TITLES[way], one)
    return table(shape, found)


def _tell(shape: Shape, what: str, run: Run) -> None:
    print(f"  {shape}, {what}: {run.bound:.2f} s", file=sys.stderr, flush=True)


class Stage:
    """The processes that stay from run to run."""

    def __init__(self, there: Ground, loader: Child, watcher: Child, door: Child) -> None:
        self._ground, self._loader, self._watcher, self._door = there, loader, watcher, door
        self._namespaces = count()

    async def prepare(self, folder: Path) -> None:
        admin = self._ground.kubeconfigs["admin"]
        await self._loader.ask("run", kubeconfig=admin)
        await self._watcher.ask("run", kubeconfig=admin)
        await self._door.ask("run", kubeconfig=admin, folder=str(folder))

    async def measure(self, way: Way, shape: Shape) -> Run:
        """One run in a namespace of its own, cleared away afterwards."""
        namespace = f"run-{next(self._namespaces)}"
        await self._ground.open_namespace(namespace)
        async with AsyncExitStack() as stack:
            keeper = await self._keeper(way, shape, namespace, stack)
            found = await self._place(way, shape, namespace, keeper)
        await self._ground.clear(namespace)
        return found

    async def _keeper(self, way: Way, shape: Shape, namespace: str, stack: AsyncExitStack) -> Child | None:
        if way is Way.FREE:
            return None
        keeper = await _child(stack, "floor" if way is Way.FLOOR else "controller")
        account = self._ground.kubeconfigs["floor" if way is Way.FLOOR else "ours"]
        more = {"quorum": shape.pods} if way is Way.FLOOR else {}
        await keeper.ask("run", kubeconfig=account, namespace=namespace, **more)
        return keeper

    async def _used(self, keeper: Child | None) -> dict[str, Any]:
        return {"cpu": 0.0, "peak": 0.0} if keeper is None else await keeper.ask("figures")

    async def _place(self, way: Way, shape: Shape, namespace: str, keeper: Child | None) -> Run:
        what: dict[str, Any] = {"namespace": namespace, "way": way, "groups": shape.groups, "pods": shape.pods}
        await self._watcher.ask("begin", namespace=namespace)
        door = (await self._door.ask("figures"))["cpu"]
        before = await self._used(keeper)
        begun = await self._loader.ask("begin", patience=PATIENCE, **what)
        bound = asyncio.create_task(self._watcher.ask("until", patience=PATIENCE, count=shape.size))
        last = (await self._loader.ask("finish", patience=PATIENCE, **what))["at"]
        ends: dict[str, float] = (await bound)["last"]
        figures = await self._used(keeper)
        door = (await self._door.ask("figures"))["cpu"] - door
        return Run(
            created=max(last) - begun["began"],
            bound=max(ends.values()) - max(last),
            groups=[ends[plan.group_name(group)] - at for group, at in enumerate(last)],
            counted=await self._counted(way, shape, namespace),
            cpu=figures["cpu"] - before["cpu"],
            peak=figures["peak"],
            door_cpu=door,
            decisions=figures.get("decisions"),
        )

    async def _counted(self, way: Way, shape: Shape, namespace: str) -> Counted | None:
        if way is Way.FREE:
            return None
        account = "floor" if way is Way.FLOOR else "ours"
        requests = await asyncio.to_thread(self._ground.requests, account, namespace)
        return counted(requests, shape.size, map(plan.group_name, range(shape.groups)))


# --- The table -------------------------------------------------------------------------------------------------------


COLUMNS = (
    "way", "bound s", "least", "most", "a group p50", "p99", "created s", "whole s", "CPU s", "peak MiB", "PATCHes",
    "decided", "writes",
)  # fmt: skip


def table(shape: Shape, found: dict[Way, list[Run]]) -> Table:
    """Medians over the runs. The ratio to the floor is that of the geometric means: it uses every run, and one that a
    busy machine has slowed down counts no more than one that it has not.
    """
    ours, floor, free = found[Way.OURS], found[Way.FLOOR], found[Way.FREE]
    to_floor = [one.bound / other.bound for one, other in zip(ours, floor, strict=True)]
    notes = [
        _run_by_run(to_floor),
        _to_free(ours, free),
        f"webhook: {median([one.door_cpu for one in ours]):.2f} s of CPU for {shape.size:,} pods, outside the clock",
        _decisions([one.decisions for one in ours if one.decisions]),
        "bound: from the last member of all groups there to the last pod bound, medians; a group: the same by itself",
        "PATCHes of a pod, decision writes of a group, and all writes of a group beside those of pods",
    ]
    counts = [one.counted for one in ours if one.counted is not None]
    targets = [
        Target(f"{shape}: (c)/(b)", geometric_mean(to_floor), LIMIT),
        Target(f"{shape}: PATCHes of one pod", max(one.most_patches_of_a_pod for one in counts), 1),
        Target(f"{shape}: decision writes of one group", max(one.most_decisions_of_a_group for one in counts), 1),
    ]
    return Table(
        name=f"{NAME} {shape}",
        title=f"{shape} pods: groups placed by kube-scheduler, {len(ours)} runs of each way",
        columns=COLUMNS,
        rows=[_row(way, found[way]) for way in Way],
        targets=targets,
        notes=[note for note in notes if note],
        samples={f"{way} bound": [one.bound for one in found[way]] for way in Way},
    )


def _row(way: Way, runs: list[Run]) -> list[Cell]:
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


def _run_by_run(ratios: list[float]) -> str:
    it = intervals.of(ratios)
    sure = "too few runs for an interval"
    if it.low is not None:
        sure = f"the true one within {it.low:.3f} and {it.high:.3f} (95 %)"
    return f"(c)/(b), run by run: median {it.median:.3f}, {min(ratios):.3f} to {max(ratios):.3f}; {sure}"


def _to_free(ours: list[Run], free: list[Run]) -> str:
    whole = median([one.whole / other.whole for one, other in zip(ours, free, strict=True)])
    bound = median([one.bound / max(other.bound, 0.001) for one, other in zip(ours, free, strict=True)])
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
