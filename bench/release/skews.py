"""Start skew with and without prefetch: a gang over two nodes; one still has to unpack the main image (A8)."""

from __future__ import annotations

import asyncio

from bench.release import gang, heavy_image, timestamps
from bench.release.cluster import MeasuredCluster
from bench.release.gang import Json, Rendering
from bench.release.heavy_image import HeavyImage
from bench.release.lifecycle import SETTLE, wait_started
from bench.release.methods import STREAM
from bench.release.results import StartSkew
from bench.release.timestamps import NANO, IncompleteLogs
from jobset_gate import names
from jobset_gate.kube.resources import JOBSETS
from jobset_gate_demo.fake import manifests

WARM, COLD = "warm", "cold"
PODS = 2
"""On each node."""


async def measured(
    cluster: MeasuredCluster, rendering: Rendering, image: HeavyImage, *, number: int, prefetch: bool, token: str
) -> StartSkew:
    """One gang by the gate stream. Raises Incomplete."""
    await heavy_image.packed(cluster, image, cluster.other)
    name = f"skew-{number}-{'with' if prefetch else 'without'}"
    jobset = _jobset(cluster, rendering, name, prefetch=prefetch, token=token)
    await asyncio.sleep(SETTLE)
    await cluster.client.create(JOBSETS, jobset)
    try:
        for job in (WARM, COLD):
            await wait_started(cluster, f"{name}-{job}-0", STREAM.namespace, PODS)
        await asyncio.sleep(SETTLE)
        lines = timestamps.lines_of(await cluster.logs(name, STREAM.namespace))
    finally:
        await cluster.clear(name, STREAM.namespace)
    return of_lines(lines, number=number, prefetch=prefetch, jobset=name)


def of_lines(lines: timestamps.Lines, *, number: int, prefetch: bool, jobset: str) -> StartSkew:
    """From the first lines of its pods, whose names begin with those of their Jobs."""
    barriers = [first for (_, container), (first, _) in lines.items() if container == names.BARRIER_CONTAINER]
    mains = {
        job: sorted(
            first
            for (pod, container), (first, _) in lines.items()
            if container == gang.MAIN and pod.startswith(f"{jobset}-{job}-")
        )
        for job in (WARM, COLD)
    }
    if len(barriers) != 2 * PODS or any(len(found) != PODS for found in mains.values()):
        raise IncompleteLogs(f"{jobset}: {len(barriers)} barriers, {mains}")
    zero = min(mains[WARM] + mains[COLD])
    return StartSkew(
        number=number,
        prefetch=prefetch,
        waited=(zero - min(barriers)) / NANO,
        warm=tuple((when - zero) / NANO for when in mains[WARM]),
        cold=tuple((when - zero) / NANO for when in mains[COLD]),
    )


def _jobset(cluster: MeasuredCluster, rendering: Rendering, name: str, *, prefetch: bool, token: str) -> Json:
    main = manifests.container(gang.MAIN, heavy_image.NAME, command=list(gang.COMMAND), imagePullPolicy="IfNotPresent")
    nodes = {WARM: cluster.node, COLD: cluster.other}
    jobs = [gang.job(job, PODS, {gang.HOSTNAME: node}, main) for job, node in nodes.items()]
    notes = {names.PREFETCH_IMAGES: "true"} if prefetch else {}
    return gang.rendered(STREAM, rendering, name=name, jobs=jobs, token=token, annotations=notes)
