"""The gate stream with 10,000 requests open, compared with a bare asyncio server that holds and answers the same."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import Any

from bench.child import Child
from bench.gangs import GangPlan, PodStep, split
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median
from jobset_gate import names

NAME = "stream"
PODS = 10_000
ROUNDS = 3
TOKEN = "0123456789abcdefghijkl"  # noqa: S105 - it opens nothing
MOST_MIB = 200.0
MOST_SECONDS = 1.0
MOST_BLOCK_MS = 20.0
NAMESPACE = "default"
BARE = "bare (baseline)"
OURS = "jobset-gate"

Json = dict[str, Any]


@dataclass(slots=True)
class StreamResult:
    """One figure for each round: MiB and seconds."""

    opened: list[float] = field(default_factory=list)
    memory: list[float] = field(default_factory=list)
    decided: list[float] = field(default_factory=list)
    """From the last request's being held to the answer of the decision's write."""
    first: list[float] = field(default_factory=list)
    last: list[float] = field(default_factory=list)
    block: list[float] = field(default_factory=list)
    own: list[float] = field(default_factory=list)

    def beats(self, found: Json) -> None:
        self.block.append(max(found["late"], default=0.0))
        self.own.append(max(found["worked"], default=0.0))


async def run(scale: Scale) -> list[ResultTable]:
    """One table."""
    plan = replace(split("gang", scale.size(PODS, 2), NAMESPACE, lean=True), token=TOKEN)
    found = {BARE: StreamResult(), OURS: StreamResult()}
    for _ in range(scale.size(ROUNDS)):
        await bare(plan, found[BARE])
        await ours(plan, found[OURS])
    return [table(found, plan.size)]


async def bare(plan: GangPlan, found: StreamResult) -> None:
    """A round of the baseline."""
    async with Child("request_holder") as server, Child("barriers") as barriers:
        url = (await server.call("listen"))["url"]
        before = await server.call("usage")
        paths = _paths(plan, "0" * 36, [f"{number:036}" for number in range(plan.size)])
        found.opened.append((await barriers.call("open", url=url, paths=paths))["seconds"])
        found.memory.append((await server.call("usage"))["rss"] - before["rss"])
        async with hearing(barriers) as heard:
            answered = await server.call(
                "tell", text=f"release {'0' * 36} 0 0 {names.REASON_STARTED}\nall have started\n"
            )
        _note(found, answered["at"], heard, plan.size)
        found.beats(answered)


async def ours(plan: GangPlan, found: StreamResult) -> None:
    """A round of ours: all pods but one are announced, then the last one is."""
    async with AsyncExitStack() as stack:
        server, controller, barriers = [
            await stack.enter_async_context(Child(module)) for module in ("apiserver", "controller", "barriers")
        ]
        api = (await server.call("install"))["url"]
        await server.call("make", plan=asdict(plan), step=PodStep.PULLING)
        its = await server.call("who", gang=plan.name)
        url = (await controller.call("run", server=api, namespace=NAMESPACE, pods=plan.size, stream=True))["stream"]
        await controller.call("quiet")
        before = await controller.call("counts")
        *most, last = _paths(plan, its["uid"], its["pods"])
        found.opened.append((await barriers.call("open", url=url, paths=most))["seconds"])
        await controller.call("quiet")
        found.memory.append((await controller.call("counts"))["rss"] - before["rss"])
        await controller.call("beating", on=True)
        asked = time.perf_counter()
        await barriers.call("open", url=url, paths=[last])
        async with hearing(barriers) as heard:
            decided = await controller.call("decided", namespace=NAMESPACE, gang=plan.name)
        found.beats(await controller.call("beating", on=False))
        found.decided.append(decided["at"] - asked)
        _note(found, decided["at"], heard, plan.size)
        await server.call("drop", gang=plan.name)


@asynccontextmanager
async def hearing(barriers: Child) -> AsyncIterator[Json]:
    """The answers are read from now on; what was heard, once the block has ended and all are read."""
    heard: Json = {}
    reading = asyncio.create_task(barriers.call("hear"))
    yield heard
    heard |= await reading


def _paths(plan: GangPlan, uid: str, pods: Sequence[str]) -> list[str]:
    gang = f"/v1/gangs/{plan.namespace}/{plan.name}/{TOKEN}/{uid}/0/0"
    return [f"{gang}/{pod}" for pod in pods]


def _note(found: StreamResult, at: float, heard: Json, pods: int) -> None:
    assert heard["heard"] == pods, f"{pods - heard['heard']} of {pods} got no verdict"
    found.first.append(heard["first"] - at)
    found.last.append(heard["last"] - at)


def table(found: dict[str, StreamResult], pods: int) -> ResultTable:
    rows: list[list[Cell]] = []
    for name, its in found.items():
        memory, decided = median(its.memory), median(its.decided) * 1e3 if its.decided else None
        rows.append([name, len(its.last), median(its.opened), memory, memory * 1024 / pods, decided])
        rows[-1] += [median(its.first) * 1e3, median(its.last) * 1e3, max(its.block) * 1e3, max(its.own) * 1e3]
    its = found[OURS]
    return ResultTable(
        name=NAME,
        title=f"{pods:,} requests open on the gate stream, of one gang, all answered",
        columns=[
            "server",
            "rounds",
            "open s",
            "MiB on top",
            "KiB each",
            "decided ms",
            "first ms",
            "last ms",
            "block ms",
            "own ms",
        ],
        rows=rows,
        targets=[
            ResultTarget(f"memory of {pods:,} open requests, on top", max(its.memory), MOST_MIB, " MiB"),
            ResultTarget("from the decision's write to the last answer read", max(its.last), MOST_SECONDS, " s"),
            ResultTarget("longest block by own work while all are answered", max(its.own) * 1e3, MOST_BLOCK_MS, " ms"),
        ],
        notes=[
            "medians; open: until all are held; MiB on top: resident memory; the client shares the machine",
            "decided: from the last request to the answer of the ConfigMap's write; first, last: from then to answers",
            "baseline: a protocol that parses nothing, holds as many and answers all in one go; it decides nothing",
            "block (max): how late a task was that wants to be woken every 5 ms; own (max): our own work in it",
        ],
        samples={f"{name} last answer": one.last for name, one in found.items()},
    )
