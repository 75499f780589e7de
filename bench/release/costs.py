"""What waiting costs: a gang one pod short is held for a while, its barriers' cgroups are read, then it is let go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from bench.release import floor, usage
from bench.release.cluster import LOOK_EVERY, PATIENCE, Cluster
from bench.release.gang import WORKERS, Json
from bench.release.lives import started
from bench.release.results import Cost
from bench.release.usage import Usage
from bench.release.ways import Way
from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBSETS

HELD = 60.0
"""Seconds between the two looks at the waiting barriers."""
LOOKS_AGAIN = 20.0
"""Seconds; kubelets look at cgroups every ten or so."""


async def measured(cluster: Cluster, way: Way, jobset: Json, pods: int) -> Cost:
    """The barriers of this gang, which waits for an absent pod."""
    name = jobset["metadata"]["name"]
    await cluster.client.create(JOBSETS, jobset)
    try:
        before = await _barriers(cluster, way, lambda found: len(found) >= pods)
        await asyncio.sleep(HELD)
        found = usage.average(before, await _barriers(cluster, way, lambda found: len(found) >= pods))
        await _let_go(cluster, way, name)
        await started(cluster, f"{name}-{WORKERS}-0", way.namespace, pods)
        left = await _left(cluster, way)
    finally:
        await cluster.clear(name, way.namespace)
    return Cost(
        way=way.key,
        pods=pods,
        seconds=found.seconds,
        millicores=found.millicores,
        rss=found.rss,
        working_set=found.working_set,
        left=left,
    )


async def _barriers(cluster: Cluster, way: Way, enough: Callable[[dict[str, Usage]], bool]) -> dict[str, Usage]:
    """Once the kubelet's last look says so."""
    async with asyncio.timeout(PATIENCE):
        while True:
            summary: dict[str, Any] = json.loads(await cluster.raw(f"/api/v1/nodes/{cluster.node}/proxy/stats/summary"))
            found = usage.of_barriers(summary, way.namespace)
            if enough(found):
                return found
            await asyncio.sleep(LOOK_EVERY * 4)


async def _let_go(cluster: Cluster, way: Way, name: str) -> None:
    """By hand, since one pod is absent: the bypass, or on the floor what its last barrier would have done."""
    if way.keeper:
        body = {"metadata": {"annotations": {names.BYPASS: "true"}}}
        await cluster.client.patch(JOBSETS, name, way.namespace, body=body, patch=PatchType.MERGE)
        return
    pod = next(pod["metadata"]["name"] for pod in await cluster.pods(name, way.namespace) if _held(pod))
    into = ("exec", "--namespace", way.namespace, pod, "-c", names.BARRIER_CONTAINER, "--")
    await cluster.kubectl(*into, "sh", "-c", floor.RELEASE)


async def _left(cluster: Cluster, way: Way) -> int:
    """How many barriers the kubelet still measures, once it has had time to look again."""
    await asyncio.sleep(LOOKS_AGAIN)
    return len(await _barriers(cluster, way, lambda _: True))


def _held(pod: Json) -> bool:
    states = (one["state"] for one in pod["status"].get("initContainerStatuses") or ())
    return any("running" in state for state in states)
