"""10,000 pods as one gang, whose last pod has not started: what the controller's process holds, for each source."""

from __future__ import annotations

import random
from contextlib import AsyncExitStack
from dataclasses import asdict

from bench.child import Child
from bench.gangs import GangPlan, PodStep, single, split
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median
from jobset_gate.sources.table import JOBSET, SOURCES

NAME = "memory"
PODS = 10_000
ROUNDS = 5
"""In each one controller for each source, in random order."""
PER_SECOND = 5000.0
QUIET = 2.0
MOST_OF_JOBSET = 1.25

Found = dict[str, list[dict[str, float]]]
"""By source: MiB in use when it was started, when the pods were listed and at the end, and the most of all."""


async def run(scale: Scale) -> list[ResultTable]:
    """One table."""
    pods, quiet = scale.size(PODS, 10), QUIET * min(1.0, scale.factor * 10)
    found: Found = {source: [] for source in SOURCES}
    rng = random.Random(4)  # noqa: S311 - the same order in every run
    async with AsyncExitStack() as stack:
        urls = {}
        for source in SOURCES:
            server = await stack.enter_async_context(Child("apiserver"))
            urls[source] = (await server.call("install"))["url"]
            await _make(server, plan_of(source, pods))
        for _ in range(scale.size(ROUNDS)):
            for source in rng.sample(list(SOURCES), len(SOURCES)):
                found[source].append(await _used(urls[source], plan_of(source, pods), quiet))
    return [table(found, pods)]


def plan_of(source: str, pods: int) -> GangPlan:
    """JobSets have Jobs of 100 pods."""
    return split(NAME, pods, lean=True) if source == JOBSET.name else single(source, NAME, pods)


async def _make(server: Child, plan: GangPlan) -> None:
    await server.call("make", plan=asdict(plan), step=PodStep.PULLING)
    first, last = 0, plan.size - 1
    await server.call("move", gangs=[plan.name], first=first, last=last, step=PodStep.HELD, per_second=PER_SECOND)


async def _used(url: str, plan: GangPlan, quiet: float) -> dict[str, float]:
    async with Child("controller") as controller:
        listed = await controller.call("run", server=url, namespace="default", pods=plan.size, pod_sources=True)
        await controller.call("quiet", seconds=quiet)
        end = await controller.call("counts")
    return {"idle": listed["idle"]["rss"], "listed": listed["full"]["rss"], "end": end["rss"], "peak": end["peak"]}


def table(found: Found, pods: int) -> ResultTable:
    rows: list[list[Cell]] = []
    targets = []
    for source, runs in found.items():
        ratios = [ours["end"] / its["end"] for ours, its in zip(runs, found[JOBSET.name], strict=True)]
        columns = [median([its[when] for its in runs]) for when in ("idle", "listed", "end", "peak")]
        rows.append([source, len(runs), *columns, (columns[2] - columns[0]) * 1024 / pods, median(ratios)])
        if source != JOBSET.name:
            targets.append(ResultTarget(f"a {source}'s to a JobSet's", median(ratios), MOST_OF_JOBSET, " x"))
    return ResultTable(
        name=NAME,
        title=f"Resident memory of the controller with {pods:,} pods in one gang; medians",
        columns=["source", "runs", "before MiB", "listed MiB", "waiting MiB", "peak MiB", "KiB per pod", "x JobSet's"],
        rows=rows,
        targets=targets,
        notes=["waiting: all but one have started; clock and members are written", "ratios: round by round"],
        samples={f"{source} waiting": [its["end"] for its in runs] for source, runs in found.items()},
    )
