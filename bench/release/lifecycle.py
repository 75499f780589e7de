"""One gang's life: made, released, read, taken away."""

from __future__ import annotations

import asyncio
import contextlib

from bench.release import apiwrites, timestamps
from bench.release.cluster import POLL_INTERVAL, MeasuredCluster
from bench.release.gang import MAIN, WORKERS, Json
from bench.release.timestamps import GangTimestamps, IncompleteLogs
from jobset_gate import names
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import JOBS, JOBSETS

SETTLE = 2.0
"""Seconds of quiet before a gang, and after its last start: logs and metrics are to be complete."""
LONGEST = 300.0
"""Seconds from the making of a gang to its last main container. The KEP's way may take two minutes."""


async def run_gang(cluster: MeasuredCluster, jobset: Json, pods: int) -> tuple[GangTimestamps, dict[str, int]]:
    """The gang's moments, and the writes to the API server. Raises Incomplete, and the gang is gone then."""
    name, namespace = jobset["metadata"]["name"], jobset["metadata"]["namespace"]
    await asyncio.sleep(SETTLE)
    before = apiwrites.written(await cluster.raw("/metrics"))
    await cluster.client.create(JOBSETS, jobset)
    try:
        await wait_started(cluster, f"{name}-{WORKERS}-0", namespace, pods)
        await asyncio.sleep(SETTLE)
        after = apiwrites.written(await cluster.raw("/metrics"))
        lines = timestamps.lines_of(await cluster.logs(name, namespace))
    finally:
        await cluster.clear(name, namespace)
    gang = timestamps.of_gang(lines, barrier=names.BARRIER_CONTAINER, main=MAIN, pods=pods)
    return gang, apiwrites.between(before, after)


async def wait_started(cluster: MeasuredCluster, job: str, namespace: str, pods: int) -> None:
    """Until so many main containers of a Job run; asks seldom, so as not to be in the way. Raises Incomplete."""
    ready = 0
    try:
        async with asyncio.timeout(LONGEST):
            while True:
                with contextlib.suppress(NotFound):  # the Job is not made yet
                    ready = (await cluster.client.get(JOBS, job, namespace)).get("status", {}).get("ready", 0)
                if ready >= pods:
                    return
                await asyncio.sleep(POLL_INTERVAL)
    except TimeoutError as late:
        raise IncompleteLogs(f"{ready} of {pods} main containers ran after {LONGEST:.0f} s") from late
