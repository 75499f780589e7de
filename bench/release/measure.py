"""The measurement: gangs one after another, each kept in the results' file as soon as it is over."""

from __future__ import annotations

import asyncio
import os
import secrets
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from bench import machine
from bench.release import cluster, costs, deployments, floor, gang, heavy_image, lifecycle, results, skews
from bench.release.cluster import MeasuredCluster
from bench.release.gang import Rendering
from bench.release.methods import KEP, STREAM, ReleaseMethod
from bench.release.plan import MeasurementPlan
from bench.release.results import FailedRun, ReleaseRun, Results
from bench.release.timestamps import IncompleteLogs
from bench.release.tools import ToolFailed
from jobset_gate.kube.errors import KubeError

FAILURES: Final = (IncompleteLogs, ToolFailed, KubeError)
"""Of one gang. It is gone then; if it is not (Unfit), there is no sense in going on."""


@dataclass(slots=True)
class Measurement:
    """One measurement in one cluster, with the controllers in it."""

    cluster: MeasuredCluster
    plan: MeasurementPlan
    rendering: Rendering
    found: Results
    file: Path
    began: float = field(default_factory=time.monotonic)

    async def run(self) -> None:
        """Everything of the plan. A gang that does not finish is reported, and the next one has its turn."""
        await self._warm()
        if self.plan.cost_pods:
            # Side by side: they only wait. The KEP's barriers are those of the annotation's way.
            await asyncio.gather(*(self._cost(way) for way in self.plan.ways if way is not KEP))
        await self._skews()
        gangs = list(self.plan.gangs())
        for place, (number, pods, way) in enumerate(gangs, start=1):
            await self._gang(number, pods, way, f"{place}/{len(gangs)}")
        await self._sweep()

    async def _sweep(self) -> None:
        if self.cluster.kind:
            await self.cluster.on_node(self.cluster.node, "rm", "-rf", floor.FOLDER)
        else:
            tell(f"left on {self.cluster.node}: {floor.FOLDER}, with empty files")

    async def _warm(self) -> None:
        """One gang that does not count: images are unpacked, caches filled, connections made."""
        tell("warming up")
        await lifecycle.run_gang(self.cluster, self._jobset(STREAM, "warm", min(self.plan.sizes)), min(self.plan.sizes))

    async def _gang(self, number: int, pods: int, way: ReleaseMethod, place: str) -> None:
        try:
            moments, writes = await lifecycle.run_gang(
                self.cluster, self._jobset(way, f"run-{number}-{pods}", pods), pods
            )
        except FAILURES as why:
            self._failed(number, pods, way, why)
            return
        rounded = tuple(round(after, 4) for after in moments.after)
        made = ReleaseRun(
            number=number,
            way=way.key,
            pods=pods,
            gathering=round(moments.gathering, 4),
            released=round(moments.released, 4),
            mains=rounded,
            writes=writes,
        )
        self.found.runs.append(made)
        tell(f"{place}: run {number}, {pods} pods, {way.key}: first {made.first:.2f} s, last {made.last:.2f} s")
        self._keep()

    async def _cost(self, way: ReleaseMethod) -> None:
        pods = self.plan.cost_pods
        try:
            cost = await costs.measured(self.cluster, way, self._jobset(way, "cost", pods, absent=True), pods)
        except (*FAILURES, TimeoutError) as why:
            self._failed(0, pods, way, why)
            return
        self.found.costs.append(cost)
        tell(f"waiting, {way.key}: {cost.millicores:.2f} millicores, {cost.rss:.2f} MiB")
        self._keep()

    async def _skews(self) -> None:
        if not self.plan.skew_runs:
            return
        if not self.cluster.kind or self.cluster.node == self.cluster.other:
            self.found.notes.append("Prefetch was not measured: that needs two nodes of kind on the local docker.")
            return
        tell("making a large image")
        nodes = (self.cluster.node, self.cluster.other)
        image = await heavy_image.made(self.rendering.image, nodes)
        self.found.image = heavy_image.WORDS
        try:
            await heavy_image.unpacked(self.cluster, image, self.cluster.node)
            for number, prefetch in self.plan.skews():
                await self._skew(image, number, prefetch=prefetch)
        finally:
            await heavy_image.dropped(self.cluster, image, nodes)

    async def _skew(self, image: heavy_image.HeavyImage, number: int, *, prefetch: bool) -> None:
        token = secrets.token_urlsafe(16)
        try:
            skew = await skews.measured(
                self.cluster, self.rendering, image, number=number, prefetch=prefetch, token=token
            )
        except FAILURES as why:
            self._failed(number, 2 * skews.PODS, STREAM, why)
            return
        self.found.skews.append(skew)
        tell(f"run {number}, {'with' if prefetch else 'without'} prefetch: skew {skew.skew:.2f} s")
        self._keep()

    def _jobset(self, way: ReleaseMethod, name: str, pods: int, *, absent: bool = False) -> gang.Json:
        token = secrets.token_urlsafe(16)
        return gang.of(way, self.rendering, name=name, pods=pods, node=self.cluster.node, token=token, absent=absent)

    def _failed(self, number: int, pods: int, way: ReleaseMethod, why: Exception) -> None:
        self.found.failures.append(FailedRun(number=number, way=way.key, pods=pods, why=f"{why}"))
        tell(f"run {number}, {pods} pods, {way.key}: NOT MEASURED: {why}")
        self._keep()

    def _keep(self) -> None:
        self.found.seconds = round(time.monotonic() - self.began)
        self.found.load = round(os.getloadavg()[0], 2)
        results.write(self.found, self.file)


async def measure(kubeconfig: str, plan: MeasurementPlan, *, image: str, small: str, file: Path) -> Results:
    """In the cluster of this kubeconfig. `image` is ours, `small` is that of barriers and main containers."""
    async with cluster.reached(kubeconfig) as it:
        found = Results(machine=machine.facts(), cluster=it.facts, command=_command(plan), seed=plan.seed)
        rendering = Rendering(small, deployments.stream_url())
        async with cluster.kept(it, image):
            await Measurement(it, plan, rendering, found, file).run()
    return found


def _command(plan: MeasurementPlan) -> str:
    return "make bench-release" + (f' RELEASE_ARGS="{" ".join(plan.words)}"' if plan.words else "")


def tell(text: str) -> None:
    """Progress, to a person."""
    print(text, file=sys.stderr, flush=True)
