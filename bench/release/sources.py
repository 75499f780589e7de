"""How fast gangs of each source are released: `python -m bench.release.sources`, the same pods on one node.

A kind cluster with jobset-gate as the chart installs it, so that its webhook admits the pods. LeaderWorkerSets and
JobSets are made by stand-ins where the real ones cannot be had; Jobs and StatefulSets by Kubernetes.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from bench import intervals, report
from bench.release import timestamps
from bench.release.gang import HOSTNAME
from bench.release.lifecycle import LONGEST, SETTLE
from bench.release.tables import interval_text
from bench.report import Cell, ResultTable, ResultTarget
from e2e import __main__ as e2e
from e2e import commands, gangs, predicates, tools
from e2e.cluster import CONTROL_PLANE, E2eCluster
from e2e.installation import installed
from jobset_gate import names
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import JOBS, JOBSETS, LEADER_WORKER_SETS, NAMESPACES, PODS, STATEFUL_SETS, Resource
from jobset_gate.sources.table import JOB, JOBSET, LWS, START_GROUP
from tests.fakes import lws_standin

KIND: Final = "jobset-gate-sources"
NAMESPACE: Final = "bench-sources"
GANG: Final = "gang"
RATIO: Final = 1.10
POLL_INTERVAL: Final = 0.5
WIDTH: Final = 140
MADE_OF: Final[Mapping[str, tuple[Resource, str]]] = {
    JOBSET.name: (JOBSETS, names.JS_NAME),
    JOB.name: (JOBS, "batch.kubernetes.io/job-name"),
    LWS.name: (LEADER_WORKER_SETS, names.LWS_NAME),
    START_GROUP.name: (STATEFUL_SETS, names.START_GROUP),
}
"""By source: what makes its pods, and the label by which these are found."""

Json = dict[str, Any]


def manifest(source: str, pods: int, image: str, node: str) -> Json:
    """A gang of so many pods on that node. It waits for ever."""
    resource, label = MADE_OF[source]
    fields = {
        "nodeSelector": {HOSTNAME: node},
        "terminationGracePeriodSeconds": 1,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
    }
    if source == JOBSET.name:
        return gangs.gang(gangs.workers(image, jobs=1, pods=pods, pod=fields))
    policy = "Never" if source == JOB.name else "Always"
    template: Json = {"spec": {**fields, "restartPolicy": policy, "containers": [gangs.main(image)]}}
    meta: Json = {"name": GANG, "namespace": NAMESPACE, "annotations": {names.CONFIG: "{}"}}
    if source == JOB.name:
        spec: Json = {"completionMode": "Indexed", "completions": pods, "parallelism": pods, "template": template}
    elif source == LWS.name:
        spec = {"replicas": 1, "leaderWorkerTemplate": {"size": pods, "workerTemplate": template}}
    else:
        del meta["annotations"]
        template["metadata"] = {"labels": {label: GANG}, "annotations": {names.START_SIZE: str(pods)}}
        selector = {"matchLabels": {label: GANG}}
        spec = {"serviceName": GANG, "podManagementPolicy": "Parallel", "replicas": pods, "selector": selector}
        spec["template"] = template
    return {"apiVersion": resource.api_version, "kind": resource.kind, "metadata": meta, "spec": spec}


async def released(it: E2eCluster, client: Client, source: str, made: Json, pods: int) -> float:
    """Seconds from the last barrier's first line to the last main container's; the gang is gone afterwards.

    Raises TimeoutError, or IncompleteLogs.
    """
    resource, label = MADE_OF[source]
    selector = f"{label}={GANG}"
    await asyncio.sleep(SETTLE)
    await client.create(resource, {**made, "metadata": {**made["metadata"], "namespace": NAMESPACE}})
    try:
        await _until_running(client, selector, pods)
        await asyncio.sleep(SETTLE)
        which = ("--namespace", NAMESPACE, "--selector", selector)
        text = await asyncio.to_thread(
            it.kubectl, "logs", *which, "--all-containers", "--prefix", "--timestamps", "--tail=-1"
        )
    finally:
        await client.delete(resource, GANG, NAMESPACE, propagation="Background")
        await _until_running(client, selector, 0)
    lines = timestamps.lines_of(text)
    return timestamps.of_gang(lines, barrier=names.BARRIER_CONTAINER, main="main", pods=pods).after[-1]


async def _until_running(client: Client, selector: str, pods: int) -> None:
    """Until exactly so many pods are there, and their main containers run."""
    async with asyncio.timeout(LONGEST):
        while True:
            found = (await client.list(PODS, NAMESPACE, label_selector=selector))["items"]
            if len(found) == pods and all(map(predicates.runs, found)):
                return
            await asyncio.sleep(POLL_INTERVAL)


async def measured(it: E2eCluster, image: str, *, runs: int, pods: int, seed: int) -> dict[str, list[float]]:
    """Seconds by source, run by run: within each all sources come right after one another, shuffled."""
    chance = random.Random(seed)  # noqa: S311 - an order that can be had again
    found: dict[str, list[float]] = {source: [] for source in MADE_OF}
    node = next(one for one in it.nodes() if CONTROL_PLANE not in one["metadata"]["labels"])["metadata"]["name"]
    async with Client(await access.load_access(it.kubeconfig), user_agent="bench-sources") as client:
        await client.create(NAMESPACES, {"metadata": {"name": NAMESPACE}})
        async with lws_standin.controller(client, NAMESPACE):
            for number in range(runs + 1):  # the first does not count: images are unpacked, connections made
                for source in chance.sample(list(MADE_OF), len(MADE_OF)):
                    made = manifest(source, pods, image, node)
                    took = await released(it, client, source, made, pods)
                    print(f"run {number}, {source}: {took:.2f} s", file=sys.stderr, flush=True)
                    if number:
                        found[source].append(took)
    return found


def table(found: Mapping[str, Sequence[float]], pods: int) -> ResultTable:
    """Each source, and its runs against the JobSets of the same runs."""
    rows: list[Sequence[Cell]] = []
    targets = []
    for source, seconds in found.items():
        ratio = intervals.of([one / other for one, other in zip(seconds, found[JOBSET.name], strict=True)])
        rows.append([source, len(seconds), interval_text(intervals.of(seconds)), interval_text(ratio, " x")])
        if source != JOBSET.name:
            targets.append(ResultTarget(f"last main, {source} to a JobSet", ratio.median, RATIO, " x"))
    columns = ["source", "runs", "last main, s", "to a JobSet's"]
    title = f"{pods} pods on one node: from the last barrier's start to the last main container's"
    return ResultTable("sources", title, columns, rows, targets, samples=dict(found))


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 if everything was measured, whether or not it was fast enough."""
    parser = argparse.ArgumentParser(prog="python -m bench.release.sources", description=__doc__)
    parser.add_argument("--pods", type=int, default=20)
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1, help="of the order of the sources")
    asked = parser.parse_args(arguments)
    commands.handle_signals()
    try:
        tools.provide()
        with (
            tempfile.TemporaryDirectory() as folder,
            e2e.own_cluster(KIND, keep=False) as it,
            installed(it, Path(folder), remove=False) as made,
        ):
            found = asyncio.run(measured(it, made.small_image, runs=asked.runs, pods=asked.pods, seed=asked.seed))
    except (commands.CommandFailed, TimeoutError, timestamps.IncompleteLogs) as problem:
        print(f"bench.release.sources: {problem}", file=sys.stderr)
        return 1
    report.show(table(found, asked.pods), Console(width=None if sys.stdout.isatty() else WIDTH))
    return 0


if __name__ == "__main__":
    sys.exit(main())
