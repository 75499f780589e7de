"""Does the cost grow with the pods and no faster: the same figures for gangs of 100, 1,000 and 10,000."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from itertools import pairwise

from bench.child import Child
from bench.gangs import GangPlan, PodStep, split
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median

NAME = "growth"
SIZES = (100, 1000, 10_000)
REPEATS = (8, 6, 3)
"""Small gangs cost so little that it takes more of them to see it."""
SPAN = 3.0
"""Seconds over which the pods of a gang start, whatever its size."""
BARE_WRITES = 20
QUIET = 0.5
SLACK = 1.5
"""How much more per pod the larger gang may cost before it is called faster than linear."""


@dataclass(slots=True)
class GrowthResult:
    """Of each gang of one size."""

    pods: int
    cpu: list[float] = field(default_factory=list)
    """Seconds of CPU from the first start to the decision."""
    passes: list[float] = field(default_factory=list)
    before: list[float] = field(default_factory=list)
    """Writes until the decision."""
    after: list[float] = field(default_factory=list)
    """Writes from then until every pod has gone on."""
    spread: list[float] = field(default_factory=list)
    """Seconds of CPU from the decision until then."""
    decision: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)


async def run(scale: Scale) -> list[ResultTable]:
    """One row per size."""
    found, span = [], SPAN * min(1.0, scale.factor * 5)
    for full, repeats in zip(SIZES, REPEATS, strict=True):
        pods = scale.size(full, 10)
        found.append(await measure(pods, scale.size(repeats), span=span))
    return [table(found, span=span)]


async def measure(pods: int, repeats: int, *, span: float) -> GrowthResult:
    """One gang after the other, with a controller and an API server of their own."""
    async with Child("apiserver") as server, Child("controller") as controller:
        url = (await server.call("install"))["url"]
        await controller.call("run", server=url, namespace="default")
        plans = [split(f"gang-{number}", pods) for number in range(repeats)]
        found = GrowthResult(plans[0].size)
        for plan in plans:
            found.bare += (await controller.call("bare", namespace="default", times=BARE_WRITES))["seconds"]
            await _run_gang(plan, server, controller, found, span=span)
    return found


async def _run_gang(plan: GangPlan, server: Child, controller: Child, found: GrowthResult, *, span: float) -> None:
    start = await controller.call("counts")
    await server.call("make", plan=asdict(plan), step=PodStep.PULLING)
    await controller.call("events", count=start["events"] + plan.size)
    await controller.call("quiet", seconds=min(QUIET, span))
    held = await controller.call("counts")
    decided = asyncio.create_task(controller.call("decided", namespace="default", gang=plan.name))
    await server.call(
        "move", gangs=[plan.name], first=0, last=plan.size, step=PodStep.HELD, per_second=plan.size / span
    )
    decision = await decided
    done = decision["then"]
    await controller.call("events", count=held["events"] + 3 * plan.size)  # started, patched, running
    await controller.call("quiet", seconds=min(QUIET, span))
    end = await controller.call("counts")
    await server.call("drop", gang=plan.name)
    await controller.call("events", count=end["events"] + plan.size)
    await controller.call("quiet", seconds=min(QUIET, span))
    found.decision.append(decision["seconds"])
    found.cpu.append(done["cpu"] - held["cpu"])
    found.spread.append(end["cpu"] - done["cpu"])
    found.passes.append(done["passes"] - held["passes"])
    found.before.append(done["writes"] - start["writes"])
    found.after.append(end["writes"] - done["writes"])


def table(found: Sequence[GrowthResult], *, span: float) -> ResultTable:
    rows: list[list[Cell]] = []
    for its in found:
        decision, cpu = median(its.decision), median(its.cpu) / its.pods
        rows.append([f"{its.pods:,}", len(its.cpu), cpu * 1e6, median(its.spread) / its.pods * 1e6])
        rows[-1] += [median(its.passes) / its.pods, median(its.bare) * 1e3, decision * 1e3]
        rows[-1] += [round(median(its.before)), round(median(its.after))]
    return ResultTable(
        name=NAME,
        title=f"One gang, its pods starting over {span:g} s; medians",
        columns=[
            "pods",
            "gangs",
            "CPU us per start",
            "CPU us per release",
            "passes per start",
            "bare write ms",
            "decision ms",
            "writes to it",
            "writes after it",
        ],
        rows=rows,
        targets=[target for small, large in pairwise(found) for target in _targets(small, large)],
        notes=[
            "CPU per start: all that the controller does from the first start to the decision, by pods",
            "CPU per release: from the decision until every pod was patched and runs, by pods (one patch, two events)",
            "baseline: the next smaller gang; a fixed cost makes the small one dearer per pod, never the large one",
        ],
        samples={f"decision {its.pods}": its.decision for its in found},
    )


def _targets(small: GrowthResult, large: GrowthResult) -> list[ResultTarget]:
    factor = large.pods / small.pods
    facts = (
        ("CPU to the decision", median(small.cpu), median(large.cpu)),
        ("CPU of the release", median(small.spread), median(large.spread)),
        ("decision", median(small.decision), median(large.decision)),
    )
    of = f"{large.pods:,} to {small.pods:,} pods"
    return [ResultTarget(f"{what}, {of}", big / little, factor * SLACK, " x") for what, little, big in facts]
