"""What waiting costs: a gang one pod short is held for a while, its barriers' cgroups are read, then it is released."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

from bench.release import floor, usage
from bench.release.cluster import POLL_INTERVAL, TIMEOUT, MeasuredCluster
from bench.release.gang import WORKERS, Json
from bench.release.lifecycle import wait_started
from bench.release.methods import ReleaseMethod
from bench.release.results import WaitingCost
from bench.release.usage import Usage
from jobset_gate import names
from jobset_gate.kube.client import PatchType
from jobset_gate.kube.resources import JOBSETS

HELD = 60.0
"""Seconds between the two looks at the waiting barriers."""
CGROUP_INTERVAL = 20.0
"""Seconds; kubelets look at cgroups every ten or so."""


async def measured(cluster: MeasuredCluster, way: ReleaseMethod, jobset: Json, pods: int) -> WaitingCost:
    """The barriers of this gang, which waits for an absent pod."""
    name = jobset["metadata"]["name"]
    await cluster.client.create(JOBSETS, jobset)
    try:
        before = await _barriers(cluster, way, lambda found: len(found) >= pods)
        await asyncio.sleep(HELD)
        found = usage.average(before, await _barriers(cluster, way, lambda found: len(found) >= pods))
        await _release(cluster, way, name)
        await wait_started(cluster, f"{name}-{WORKERS}-0", way.namespace, pods)
        left = await _left(cluster, way)
    finally:
        await cluster.clear(name, way.namespace)
    return WaitingCost(
        way=way.key,
        pods=pods,
        seconds=found.seconds,
        millicores=found.millicores,
        rss=found.rss,
        working_set=found.working_set,
        left=left,
    )


async def _barriers(
    cluster: MeasuredCluster, way: ReleaseMethod, enough: Callable[[dict[str, Usage]], bool]
) -> dict[str, Usage]:
    """Once the kubelet's last look says so."""
    async with asyncio.timeout(TIMEOUT):
        while True:
            summary: dict[str, Any] = json.loads(await cluster.raw(f"/api/v1/nodes/{cluster.node}/proxy/stats/summary"))
            found = usage.of_barriers(summary, way.namespace)
            if enough(found):
                return found
            await asyncio.sleep(POLL_INTERVAL * 4)


async def _release(cluster: MeasuredCluster, way: ReleaseMethod, name: str) -> None:
    """By hand, since one pod is absent: the bypass, or on the floor what its last barrier would have done."""
    if way.has_controller:
        body = {"metadata": {"annotations": {names.BYPASS: "true"}}}
        await cluster.client.patch(JOBSETS, name, way.namespace, body=body, patch=PatchType.MERGE)
        return
    pod = next(pod["metadata"]["name"] for pod in await cluster.pods(name, way.namespace) if _held(pod))
    into = ("exec", "--namespace", way.namespace, pod, "-c", names.BARRIER_CONTAINER, "--")
    await cluster.kubectl(*into, "sh", "-c", floor.RELEASE)


async def _left(cluster: MeasuredCluster, way: ReleaseMethod) -> int:
    """How many barriers the kubelet still measures, once it has had time to look again."""
    await asyncio.sleep(CGROUP_INTERVAL)
    return len(await _barriers(cluster, way, lambda _: True))


def _held(pod: Json) -> bool:
    states = (one["state"] for one in pod["status"].get("initContainerStatuses") or ())
    return any("running" in state for state in states)
