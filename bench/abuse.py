"""What an attack costs: peak memory of webhook and controller, and how long another tenant waits meanwhile.

Each attack has processes of its own, so that no memory is left over from the one before. Before it the other tenants
are measured without any attack.
"""

from __future__ import annotations

import asyncio
import resource
import ssl
import sys
import time
import warnings
from dataclasses import dataclass, field
from functools import partial

from bench import attacks
from bench.attacks import Attack, AttackTarget
from bench.child import Child
from bench.clusters import EmbeddedBenchCluster
from bench.gangs import split
from bench.http_client import Unexpected, brief
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median, percentile
from bench.webhook import requests
from jobset_gate.kube.access import Access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import NAMESPACES

NAME = "abuse"
GANGS = 20
"""Another tenant's, one after the other, of PODS pods each."""
PODS = 8
REQUESTS = 60
"""Another tenant's JobSets at the webhook, each over a connection of its own."""
PAUSE = 0.1
LONGEST = 60.0
"""Seconds that another tenant's gang may wait for its verdict; then the measurement ends."""
TIMEOUT = 10.0
"""Seconds that an API server gives the webhook."""
LIMITS_MIB = {"webhook": 256.0, "controller": 512.0}
"""Those of the chart."""
MOST_MS = 100.0
MOST_BLOCK_MS = 50.0
"""What a busy machine adds to the former is not in it."""

QUIET = "nothing (baseline)"
CONTROLLER: dict[str, Attack] = {
    QUIET: attacks.nothing,
    "45 pods with 120,000 values made and deleted": attacks.wide_pods,
    "10 groups with 120,000 values each, 500 nodes": attacks.wide_groups,
    "150 Events of 1.4 MB on a Job": attacks.long_events,
    "600 pods with 250 KB of verdict": attacks.long_verdicts,
    "150 ConfigMaps of 1 MB": attacks.large_config_maps,
    "a JobSet with 60,000 devices, changed each second": attacks.many_devices,
    "stream: 2,000 requests for a suspended giant": attacks.giant_gang,
    "stream: 2,000 half heads": attacks.half_heads("stream", 2000),
    "health: 2,000 half heads": attacks.half_heads("health", 2000),
}
WEBHOOK: dict[str, Attack] = {
    QUIET: attacks.nothing,
    "80,000 keys in a config": attacks.large_reviews(attacks.many_keys),
    "14,000 replicatedJobs": attacks.large_reviews(attacks.many_jobs),
    "40 bodies of 6.9 MiB without their last byte": attacks.half_bodies,
    "1,000 half heads": attacks.half_heads("webhook", 1000),
}
WIDE = "10 groups with 120,000 values each, 500 nodes"


@dataclass(slots=True)
class AbuseResult:
    """Of one attack."""

    seconds: list[float] = field(default_factory=list)
    """Another tenant's, of requests that were served."""
    failed: int = 0
    held: int | None = None
    """Connections that were still open at the end; None: it has none."""
    peak: float = 0.0
    block: float | None = None
    """Seconds of the longest piece of own work on the loop."""


async def run(scale: Scale) -> list[ResultTable]:
    """One table."""
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    found: dict[tuple[str, str], AbuseResult] = {}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Sending a large body", ResourceWarning)  # aiohttp's; they are meant to be
        for program, measure, named in (("controller", on_controller, CONTROLLER), ("webhook", on_webhook, WEBHOOK)):
            for name, attack in named.items():
                print(f"  {program}: {name}", file=sys.stderr, flush=True)
                found[program, name] = await measure(attack, scale)
    return [table(found)]


async def on_controller(attack: Attack, scale: Scale) -> AbuseResult:
    """Another tenant's gangs, each from its last pod's start to the answer of its verdict's write."""
    found = AbuseResult()
    async with Child("apiserver") as server, Child("controller") as controller:
        url = (await server.call("install"))["url"]
        where = await controller.call("run", server=url, namespace="default", whole=True)
        ground = EmbeddedBenchCluster(server, url)
        async with Client(Access(server=url), timeout=120.0) as api:
            await api.create(NAMESPACES, {"metadata": {"name": attacks.TENANT}})
            target = AttackTarget(scale, stream=where["stream"], health=where["health"], api=api)
            await _bystander_latency(ground, controller, "warm-up")
            await controller.call("beating", on=True)
            async with attack(target) as sockets:
                for number in range(scale.size(GANGS, 2)):
                    seconds = await _bystander_latency(ground, controller, f"tenant-{number}")
                    if seconds is None:
                        found.failed += 1
                        break
                    found.seconds.append(seconds)
                    await asyncio.sleep(PAUSE)
                found.held = sum(one.open for one in sockets) if sockets else None
        found.block = max((await controller.call("beating", timeout=10 * LONGEST, on=False))["worked"], default=0.0)
        found.peak = (await controller.call("counts", timeout=10 * LONGEST))["peak"]
    return found


async def _bystander_latency(ground: EmbeddedBenchCluster, controller: Child, name: str) -> float | None:
    """None: it was not decided for a minute."""
    plan = split(name, PODS, ground.namespace, lean=True)
    await ground.make(plan)
    await ground.start(plan, 0, plan.size - 1)
    asked = time.perf_counter()
    await ground.start(plan, plan.size - 1, plan.size)
    what = {"namespace": ground.namespace, "gang": plan.name, "within": LONGEST}
    decided = await controller.call("decided", timeout=10 * LONGEST, **what)
    await ground.drop(plan)
    return float(decided["at"]) - asked if decided else None


async def on_webhook(attack: Attack, scale: Scale) -> AbuseResult:
    """Another tenant's creations, each over a new connection and with an API server's patience."""
    found = AbuseResult()
    async with Child("webhook") as server:
        where = await server.call("where")
        tls = ssl.create_default_context(cadata=where["ca"])
        _, create, *_ = requests(where["url"])
        send = partial(_post, where["url"], tls, create.request)
        async with brief(where["url"], tls) as connection:  # the first takes longest: no limit
            await connection.post(create.request)
        async with attack(AttackTarget(scale, webhook=where["url"], tls=tls)) as sockets:
            for _ in range(scale.size(REQUESTS, 2)):
                try:
                    found.seconds.append(await send())
                except (Unexpected, OSError, EOFError, TimeoutError):
                    found.failed += 1
                await asyncio.sleep(PAUSE)
            found.held = sum(one.open for one in sockets) if sockets else None
        found.peak = (await server.call("usage"))["peak"]
    return found


async def _post(url: str, tls: ssl.SSLContext, request: bytes) -> float:
    start = time.perf_counter()
    async with asyncio.timeout(TIMEOUT), brief(url, tls) as connection:
        await connection.post(request)
        return time.perf_counter() - start


def table(found: dict[tuple[str, str], AbuseResult]) -> ResultTable:
    rows: list[list[Cell]] = []
    targets = []
    for (program, name), its in found.items():
        worst = percentile(its.seconds, 99) * 1e3 if its.seconds else None
        middle = median(its.seconds) * 1e3 if its.seconds else None
        block = None if its.block is None else its.block * 1e3
        rows.append([f"{program}: {name}", its.peak, middle, worst, its.failed, block, its.held])
        targets.append(ResultTarget(f"{program}: {name}: peak", its.peak, LIMITS_MIB[program], " MiB"))
        if name == WIDE and worst is not None and block is not None:
            targets.append(ResultTarget(f"{program}: {name}: another tenant's p99", worst, MOST_MS, " ms"))
            targets.append(ResultTarget(f"{program}: {name}: longest own work", block, MOST_BLOCK_MS, " ms"))
    return ResultTable(
        name=NAME,
        title="Attacks of one tenant or of one pod, and what everybody else notices",
        columns=["attack", "peak MiB", "tenant ms", "p99 ms", "failed", "longest own work ms", "still held"],
        rows=rows,
        targets=targets,
        notes=[
            "controller: another tenant's gang of 8 pods, from its last pod's start to the verdict's answer",
            "failed: not decided within a minute, which ends the measurement; or not answered by the webhook",
            "webhook: another tenant's CREATE over a new connection, with a timeout of 10 s",
            "still held: connections of the attack that were open when the other tenant was served",
        ],
        samples={f"{program}: {name}": its.seconds for (program, name), its in found.items()},
    )
