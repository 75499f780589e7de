"""From the last pod's start to the decision in the ConfigMap, for gangs of 1,000 pods, compared with a bare write.

Gangs of each source take turns; a LeaderWorkerSet's only on the embedded API server, where UIDs can be chosen.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field

from bench.child import Child
from bench.clusters import BenchCluster, EmbeddedBenchCluster, RealBenchCluster
from bench.gangs import GangPlan, single, split
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median, percentile
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.sources.table import JOBSET, LWS, SOURCES
from tests.plane.planes import Real
from tests.plane.real import RealPlane

NAME = "latency"
PODS = 1000
GANGS = {"embedded": 50, "real": 20}
"""Of each source."""
BUDGET_SECONDS = {"embedded": 150.0, "real": 200.0}
"""After so long no further gang is begun: what a gang costs depends on the machine."""
BARE_WRITES = 25
LAST_ONES = 10
"""Pods that start one by one after all the others, at a random moment between two leisurely passes."""
PAUSE = 1.2
QUIET = 0.2
MOST_OF_JOBSET = 1.10
"""How long the decision for a gang of a Job may take, as a part of a JobSet's."""


@dataclass(slots=True)
class LatencyResult:
    """Seconds."""

    decisions: list[float] = field(default_factory=list)
    bare: list[float] = field(default_factory=list)


Found = dict[tuple[str, str], LatencyResult]
"""By plane and source."""


async def run(scale: Scale, *, real: bool) -> list[ResultTable]:
    """A row for each plane and source."""
    async with embedded() as ground:
        found = await measure(ground, scale)
    if real:
        with RealPlane(controllers=False) as running:
            async with on_real(Real(running), "bench") as there:
                found |= await measure(there, scale)
    return [table(found, scale.kept(PODS))]


@asynccontextmanager
async def embedded() -> AsyncIterator[EmbeddedBenchCluster]:
    """An embedded API server of its own."""
    async with Child("apiserver") as server:
        url = (await server.call("install"))["url"]
        yield EmbeddedBenchCluster(server, url)


@asynccontextmanager
async def on_real(plane: Real, namespace: str) -> AsyncIterator[RealBenchCluster]:
    """A namespace of a real control plane."""
    await plane.make_namespace(namespace)
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(Client(Access(plane.access.server, plane.access.ssl)))
        ground = RealBenchCluster(client, plane.kubeconfig, namespace)
        await ground.install()
        yield ground


async def measure(cluster: BenchCluster, scale: Scale) -> Found:
    """Gang after gang, in each round one of each source, and before the last starts of each some bare writes."""
    sources = [it for it in SOURCES if it != LWS.name or cluster.name == "embedded"]
    found = {(cluster.name, source): LatencyResult() for source in sources}
    began = time.monotonic()
    rng = random.Random(2)  # noqa: S311 - the same pauses in every run
    pause = PAUSE * min(1.0, scale.factor * 10)
    async with Child("controller") as controller:
        await controller.call("run", **cluster.reach, pod_sources=True)
        for number in range(scale.size(GANGS[cluster.name], 2)):
            if time.monotonic() - began > BUDGET_SECONDS[cluster.name]:
                break
            for (_, source), its in rng.sample(list(found.items()), len(found)):
                plan = split(f"{source}-{number}", scale.kept(PODS, 10), cluster.namespace, lean=True)
                if source != JOBSET.name:
                    plan = single(source, plan.name, plan.size, cluster.namespace)
                await _run_gang(plan, cluster, controller, its, pause=rng.uniform(0.0, pause))
    return found


async def _run_gang(
    plan: GangPlan, cluster: BenchCluster, controller: Child, found: LatencyResult, *, pause: float
) -> None:
    last = plan.size - min(LAST_ONES, plan.size // 2)
    await cluster.make(plan)
    await cluster.start(plan, 0, last)
    found.bare += (await controller.call("bare", namespace=plan.namespace, times=BARE_WRITES))["seconds"]
    await asyncio.sleep(pause)
    decided = asyncio.create_task(
        controller.call("decided", namespace=plan.namespace, gang=plan.name, source=plan.source)
    )
    await cluster.start(plan, last, plan.size)
    found.decisions.append((await decided)["seconds"])
    await cluster.drop(plan)
    await controller.call("quiet", seconds=QUIET)


def table(found: Found, pods: int) -> ResultTable:
    rows: list[list[Cell]] = []
    targets = []
    for (plane, source), its in found.items():
        limit = 3 * median(its.bare) + 0.020
        worst = percentile(its.decisions, 99)
        shown = [median(its.bare), percentile(its.bare, 99), median(its.decisions), worst, limit]
        rows.append([plane, source, len(its.bare), *(seconds * 1e3 for seconds in shown[:2])])
        rows[-1] += [len(its.decisions), *(seconds * 1e3 for seconds in shown[2:])]
        text = f"{plane}, {source}: p99 of the decision against 3 x the median bare write + 20 ms"
        targets.append(ResultTarget(text, worst * 1e3, limit * 1e3, " ms"))
    for plane, source in found:
        if source != JOBSET.name:
            ours, baseline = (median(found[plane, it].decisions) for it in (source, JOBSET.name))
            text = f"{plane}: median of the decision, a {source}'s to a JobSet's"
            targets.append(ResultTarget(text, ours / baseline, MOST_OF_JOBSET, " x"))
    return ResultTable(
        name=NAME,
        title=f"Last start seen to ConfigMap written, gangs of {pods:,} pods one after another",
        columns=["plane", "source", "bare writes", "median ms", "p99 ms", "gangs", "median ms", "p99 ms", "limit ms"],
        rows=rows,
        targets=targets,
        notes=[
            "bare write: a PUT of such a ConfigMap by the controller's own client, before the last starts of each gang",
            "jobset: ten Jobs of 100 pods; job: one Indexed Job; lws, startgroup: pods without Jobs",
            "in each round one gang of each source, in random order",
            "p99 of fewer than 100 gangs is the slowest of them",
        ],
        samples={
            f"{plane} {source} {what}": values
            for (plane, source), its in found.items()
            for what, values in (("decisions", its.decisions), ("bare", its.bare))
        },
    )
