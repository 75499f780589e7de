"""What the controller writes to the API server for one gang of each source, of 20 and of 1,000 pods."""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import asdict

from bench.child import Child
from bench.gangs import GangPlan, PodStep, single
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from jobset_gate.sources.table import JOBSET, SOURCES

NAME = "writes"
SIZES = (20, 1000)
SPAN = 0.1
"""Seconds over which the pods of a gang start, so that no leisurely pass comes between."""
QUIET = 1.0
SHORT_QUIET = 0.1

Found = dict[tuple[int, str], Counter[str]]
"""By pods and source: writes by verb and resource."""


async def run(scale: Scale) -> list[ResultTable]:
    """Gangs one after the other, of each source, in one controller."""
    found: Found = {}
    async with Child("apiserver") as server, Child("controller") as controller:
        url = (await server.call("install"))["url"]
        await controller.call("run", server=url, namespace="default", pod_sources=True)
        quiet = QUIET if scale.measures else SHORT_QUIET
        await controller.call("quiet", seconds=quiet)  # JobSet's CRD gets our field
        for pods in SIZES:
            for source in SOURCES:
                plan = single(source, f"{source}-{pods}", scale.kept(pods, 2))
                found[plan.size, source] = await _written(plan, server, controller, quiet)
    return [table(found)]


async def _written(plan: GangPlan, server: Child, controller: Child, quiet: float) -> Counter[str]:
    """From its creation until all its pods have gone on."""
    start = await controller.call("counts")
    await server.call("make", plan=asdict(plan), step=PodStep.PULLING)
    await controller.call("quiet", seconds=quiet)
    decided = asyncio.create_task(
        controller.call("decided", namespace=plan.namespace, gang=plan.name, source=plan.source)
    )
    rate = plan.size / SPAN
    await server.call("move", gangs=[plan.name], first=0, last=plan.size, step=PodStep.HELD, per_second=rate)
    await decided
    await controller.call("events", count=start["events"] + 4 * plan.size)  # made, started, patched, running
    await controller.call("quiet", seconds=quiet)
    end = await controller.call("counts")
    await server.call("drop", gang=plan.name)
    await controller.call("events", count=end["events"] + plan.size)
    return Counter(end["by_kind"]) - Counter(start["by_kind"])


def table(found: Found) -> ResultTable:
    kinds = sorted(set().union(*found.values()))
    rows: list[list[Cell]] = [
        [source, pods, *(its[kind] for kind in kinds), its.total()] for (pods, source), its in found.items()
    ]
    targets = [
        ResultTarget(f"{pods:,} pods: a {source}'s, against a JobSet's", its.total(), found[pods, JOBSET.name].total())
        for (pods, source), its in found.items()
        if source != JOBSET.name
    ]
    return ResultTable(
        name=NAME,
        title="Writes of the controller for one gang, from its creation until all its pods run",
        columns=["source", "pods", *kinds, "all"],
        rows=rows,
        targets=targets,
        notes=["without the Lease; JobSets have one Job"],
    )
