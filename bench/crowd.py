"""10,000 pods in 200 gangs: what the controller's process holds in memory, works per event, and keeps its loop busy."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import asdict, dataclass
from typing import Any

from bench.child import Child
from bench.gangs import GangPlan, PodStep
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median, percentile

NAME = "crowd"
GANGS = 200
PODS_PER_GANG = 50
PER_SECOND = 2000.0
MOST_MIB = 200.0
MOST_MS = 50.0
STARTS = 5
"""Starts of a controller, which lists everything."""
REST_SECONDS = 1.0

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class LoadPhase:
    """One part of the gangs' lives, and what each process had used before and after it."""

    name: str
    before: dict[str, Json]
    after: dict[str, Json]

    def cost(self, who: str) -> float:
        """Microseconds of CPU per event that reached this process."""
        events = self.after[who]["events"] - self.before[who]["events"]
        return float(self.after[who]["cpu"] - self.before[who]["cpu"]) / float(events) * 1e6

    def events(self) -> int:
        return int(self.after["controller"]["events"] - self.before["controller"]["events"])

    def done(self, what: str) -> int:
        """Passes of the reconciler, or writes."""
        return int(self.after["controller"][what] - self.before["controller"][what])


async def run(scale: Scale) -> list[ResultTable]:
    """Three tables: memory, CPU per event, the event loop."""
    plans = [GangPlan(f"gang-{number}", 1, PODS_PER_GANG) for number in range(scale.size(GANGS, 2))]
    async with AsyncExitStack() as stack:
        server, controller, floor, naive = [
            await stack.enter_async_context(Child(module))
            for module in ("apiserver", "controller", "watcher", "watcher")
        ]
        url = (await server.call("install"))["url"]
        for plan in plans:
            await server.call("make", plan=asdict(plan), step=PodStep.UNSCHEDULED)
        pods = sum(plan.size for plan in plans)
        starts = [await _started_and_stopped(url, pods) for _ in range(scale.size(STARTS, 2) - 1)]
        rest = await controller.call("rest", seconds=REST_SECONDS)
        listed = await controller.call("run", server=url, namespace="default", pods=pods)
        starts.append(listed)
        await controller.call("beating", on=True)
        await controller.call("quiet")
        first = await controller.call("beating", on=False)
        watched = await floor.call("run", server=url, keep=False)
        phases = await CrowdBenchmark(server, {"controller": controller, "floor": floor}, plans).live()
        end = phases[-1].after
        # Last, since Python's garbage collector walks through millions of dicts there for seconds.
        kept = await naive.call("run", server=url, keep=True)
    beats = {"at rest, nothing to do (baseline)": [rest], "initial list": starts, "first look at each gang": [first]}
    return [
        memory_table({"floor": watched, "controller": listed, "naive": kept}, end, pods=pods),
        cpu_table(phases, pods=pods),
        loop_table(beats, pods=pods),
    ]


class CrowdBenchmark:
    """All gangs, and everybody who watches them."""

    def __init__(self, server: Child, watchers: dict[str, Child], plans: Sequence[GangPlan]) -> None:
        self._server, self._watchers, self._plans = server, watchers, plans

    async def live(self) -> list[LoadPhase]:
        """From the first node to the last main container."""
        last = PODS_PER_GANG - 1
        return [
            await self._phase("pods get their nodes", 0, PODS_PER_GANG, PodStep.PULLING),
            await self._phase("pods start, each gang lacks one", 0, last, PodStep.HELD),
            await self._phase("the last start, all are released and run", last, PODS_PER_GANG, PodStep.HELD, more=2),
        ]

    async def _phase(self, name: str, first: int, last: int, step: PodStep, *, more: int = 0) -> LoadPhase:
        """`more`: further events of each pod after that."""
        before = await self._counts()
        names = [plan.name for plan in self._plans]
        moved = await self._server.call("move", gangs=names, first=first, last=last, step=step, per_second=PER_SECOND)
        events = moved["moves"] + more * len(names) * PODS_PER_GANG
        for who, child in self._watchers.items():
            await child.call("events", count=before[who]["events"] + events)
        await self._watchers["controller"].call("quiet")
        return LoadPhase(name, before, await self._counts())

    async def _counts(self) -> dict[str, Json]:
        return {who: await child.call("counts") for who, child in self._watchers.items()}


def memory_table(listed: dict[str, Json], end: dict[str, Json], *, pods: int) -> ResultTable:
    names = {
        "floor": "the same client, keeps nothing (baseline)",
        "controller": "jobset-gate's controller",
        "naive": "the same client, keeps json.loads of each pod",
    }
    rows: list[list[Cell]] = []
    for who, name in names.items():
        idle: float = listed[who]["idle"]["rss"]
        full: Json = listed[who]["full"]
        last = end.get(who, full)
        rows.append([name, idle, full["rss"], last["rss"], last["peak"], (last["rss"] - idle) * 1024 / pods])
    return ResultTable(
        name=f"{NAME}-memory",
        title=f"Resident memory with {pods:,} pods in {pods // PODS_PER_GANG:,} gangs",
        columns=["process", "before MiB", "listed MiB", "at the end MiB", "peak MiB", "KiB per pod"],
        rows=rows,
        targets=[ResultTarget("the controller's peak", end["controller"]["peak"], MOST_MIB, " MiB")],
        notes=[
            "before: everything imported, nothing connected. At the end: every pod released and running",
            "json.loads: after the list only",
        ],
    )


def cpu_table(phases: Sequence[LoadPhase], *, pods: int) -> ResultTable:
    rows: list[list[Cell]] = []
    for phase in phases:
        floor, ours = phase.cost("floor"), phase.cost("controller")
        rows.append([phase.name, phase.events(), floor, ours, ours / floor, phase.done("passes"), phase.done("writes")])
    return ResultTable(
        name=f"{NAME}-cpu",
        title=f"CPU per pod event, {pods:,} pods in {pods // PODS_PER_GANG:,} gangs",
        columns=["phase", "pod events", "baseline us", "controller us", "x baseline", "passes", "writes"],
        rows=rows,
        notes=[
            f"user and system time of the whole process; events at {PER_SECOND:,.0f}/s where the benchmark makes them",
            "baseline: the same client reads the same lines and drops them",
            "controller: everything it does, passes and writes included; the last phase patches every pod once",
        ],
    )


def loop_table(beats: dict[str, list[Json]], *, pods: int) -> ResultTable:
    """`beats`: of each run, by what went on."""
    rows: list[list[Cell]] = []
    for name, runs in beats.items():
        late = [second * 1e3 for its in runs for second in its["late"]]
        rows.append([name, len(runs), len(late), median(late), percentile(late, 99), _longest(runs, "late", median)])
        rows[-1] += [_longest(runs, "late", max), _longest(runs, "worked", max)]
    listed = beats["initial list"]
    return ResultTable(
        name=f"{NAME}-loop",
        title=f"How late a task is that wants to be woken every 5 ms, {pods:,} pods",
        columns=["while", "runs", "beats", "median ms", "p99 ms", "a run's longest ms", "max ms", "own work, max ms"],
        rows=rows,
        targets=[
            ResultTarget(
                "initial list, a run's longest block (median)", _longest(listed, "late", median), MOST_MS, " ms"
            ),
            ResultTarget(
                "initial list, longest block by own work (max)", _longest(listed, "worked", max), MOST_MS, " ms"
            ),
        ],
        notes=["own work: the part of a delay that is CPU time of this very process; the rest is the machine's"],
    )


def _longest(runs: Sequence[Json], key: str, which: Callable[[list[float]], float]) -> float:
    return which([max(its[key]) * 1e3 for its in runs])


async def _started_and_stopped(url: str, pods: int) -> Json:
    async with Child("controller") as controller:
        return await controller.call("run", server=url, namespace="default", pods=pods, works=False)
