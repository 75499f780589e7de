"""Pods created at once on a real API server, by what the webhook does with them: nothing, a ready patch, its rules.

The ready patch is the one that the webhook itself would send, made once. What it costs is the API server's work: it
applies the patch, and validates and stores a larger pod.
"""

from __future__ import annotations

import asyncio
import random
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from typing import Any, Final

from bench import gangs
from bench.child import Child
from bench.children.webhook import NOTHING_PATH, READY_PATH
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, PODS
from jobset_gate.settings import Gangs
from jobset_gate.sources.table import POD_SOURCES, SOURCES
from tests.fakes.admission_server import limited
from tests.plane.planes import Real
from tests.plane.real import RealPlane
from webhook.registration import BARRIER_POD_PATH, barrier_pod_configuration

NAME: Final = "admission"
SIZE: Final = 500
AT_ONCE: Final = 16
ROUNDS: Final = 10
MOST: Final = 1 / 0.9
"""How much faster pods may be created whose webhook does nothing."""
OURS: Final = "jobset-gate"
PATHS: Final[Mapping[str, str]] = {"nothing": NOTHING_PATH, "a ready patch": READY_PATH, OURS: BARRIER_POD_PATH}

Json = dict[str, Any]
Rates = dict[tuple[str, str], list[float]]
"""Pods per second, by source and by what their webhook does."""


async def run(scale: Scale, *, real: bool) -> list[ResultTable]:
    """A row for each source and webhook; nothing without a real API server."""
    if not real:
        return []
    with RealPlane(controllers=False) as running:
        async with Child("webhook") as server:
            where = await server.call("where")
            return [table(await measure(Real(running), where, scale))]


async def measure(plane: Real, where: Json, scale: Scale) -> Rates:
    """Round by round, in each all sources and webhooks in random order. The first round does not count."""
    found: Rates = {(source, what): [] for source in POD_SOURCES for what in PATHS}
    chance = random.Random(3)  # noqa: S311 - the same order in every run
    size = scale.kept(SIZE, AT_ONCE)
    async with plane.client() as client:
        for source, what in found:
            namespace = _namespace(source, what)
            await plane.make_namespace(namespace)
            await client.create(MUTATING_WEBHOOKS, _registration(namespace, where, PATHS[what]))
        for number in range(scale.size(ROUNDS, 1) + 1):
            for (source, what), rates in chance.sample(list(found.items()), len(found)):
                rate = await _create(client, source, what, size)
                if number:
                    rates.append(rate)
                await plane.drop_namespace(_namespace(source, what))
    return found


def table(found: Rates) -> ResultTable:
    """Medians, and ratios round by round."""
    rows: list[Sequence[Cell]] = []
    targets = []
    for (source, what), rates in found.items():
        ratios = [one / other for one, other in zip(rates, found[source, "nothing"], strict=True)]
        rows.append([source, what, len(rates), median(rates), median(ratios)])
        if what == OURS:
            targets.append(ResultTarget(f"{source}: the rate of doing nothing to ours", 1 / median(ratios), MOST, " x"))
    columns = ["source", "what the webhook does", "rounds", "pods a second", "of doing nothing"]
    title = f"Pods created on a real API server, {AT_ONCE} at once"
    return ResultTable(NAME, title, columns, rows, targets)


async def _create(client: Client, source: str, what: str, size: int) -> float:
    """Pods per second."""
    namespace = _namespace(source, what)
    pod = _pod(source, namespace)
    left = [{**pod, "metadata": {**pod["metadata"], "name": f"pod-{number}"}} for number in range(size)]

    async def work() -> None:
        while left:
            made = await client.create(PODS, left.pop(), namespace)
            assert bool(made["spec"].get("initContainers")) == (what != "nothing"), "only that one injects no barrier"

    began = time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        for _ in range(AT_ONCE):
            tasks.create_task(work())
    return size / (time.perf_counter() - began)


def _pod(source: str, namespace: str) -> Json:
    """As its controller makes it, but for a name; without a token volume, whose name would be another in each pod."""
    made = gangs.GangPods(gangs.workload(gangs.single(source, "llm", SIZE)), 0.0, source=source).as_sent(1)
    meta = {"labels": made["metadata"]["labels"], "annotations": made["metadata"]["annotations"]}
    meta |= {"namespace": namespace, "ownerReferences": made["metadata"]["ownerReferences"]}
    spec = {**made["spec"], "automountServiceAccountToken": False}
    return {**made, "metadata": meta, "spec": {k: v for k, v in spec.items() if k not in ("hostname", "subdomain")}}


def _registration(namespace: str, where: Json, path: str) -> Json:
    """As it is shipped, for one namespace and with this path."""
    ca = b64encode(where["ca"].encode()).decode()
    made = barrier_pod_configuration(Gangs(sources=tuple(SOURCES)), url=where["url"], ca_bundle=ca)
    made["metadata"]["name"] = namespace
    for hook in made["webhooks"]:
        hook["clientConfig"]["url"] = where["url"] + path
    return limited(made, namespace)


def _namespace(source: str, what: str) -> str:
    return f"{source}-{what.replace(' ', '-')}"
