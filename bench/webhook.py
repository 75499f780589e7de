"""The webhook on a JobSet, a Job, a LeaderWorkerSet and single pods, compared with a handler that does nothing."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import msgspec

from bench import gangs
from bench.child import Child
from bench.children.webhook import NOTHING_PATH
from bench.gangs import GangPlan
from bench.http_client import HttpConnection, prepared
from bench.report import Cell, ResultTable, ResultTarget
from bench.scale import Scale
from bench.stats import median, percentile
from bench.workers import trainer
from jobset_gate import names
from jobset_gate.injection import inject
from jobset_gate.settings import Settings
from jobset_gate.sources.table import JOB, LWS, POD_SOURCES
from jobset_gate_demo.fake import manifests
from webhook.registration import BARRIER_POD_PATH, MUTATE_PATH, VALIDATE_PATH

NAME = "webhook"
REQUESTS = 3000
"""Of each kind, one after the other, the kinds in random order."""
CONNECTIONS = 16
SLICES = 6
SLICE_SECONDS = 1.5

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class RequestKind:
    """One kind of request."""

    name: str
    request: bytes
    says: bytes
    """What must be in its answer."""


@dataclass(frozen=True, slots=True)
class Saturation:
    """A closed loop over many connections."""

    per_second: float
    busy: float
    """The server's CPU seconds per second."""
    seconds: Sequence[float]


async def run(scale: Scale) -> list[ResultTable]:
    """Two tables: one request at a time, and as many as the server takes."""
    async with Child("webhook") as server:
        where = await server.call("where")
        tls = ssl.create_default_context(cadata=where["ca"])
        kinds = requests(where["url"])
        async with connections(where["url"], tls, 1) as (connection,):
            times = await one_by_one(connection, kinds, scale.size(REQUESTS, 20))
        length = SLICE_SECONDS * min(1.0, scale.factor * 10)
        async with connections(where["url"], tls, CONNECTIONS) as many:
            full = await saturated(server, many, kinds, slices=scale.size(SLICES), seconds=length)
    return [latency_table(kinds, times), saturation_table(full, length)]


def requests(url: str) -> list[RequestKind]:
    """The baseline first."""
    jobs = [trainer(name, replicas=2, parallelism=64) for name in ("driver", "workers", "evaluators")]
    new = manifests.jobset("llm-pretrain", replicated_jobs=jobs, config={names.TIMEOUT_FIELD: 600})
    new["metadata"] |= {"uid": "0b1c6f5e-0000-4000-8000-000000000001", "creationTimestamp": "2026-01-01T00:00:00Z"}
    old = inject.injected(new, None, settings=Settings()).document
    suspended = {**old, "spec": {**old["spec"], "suspend": True}}
    create, update = review("CREATE", new, None), review("UPDATE", suspended, old)
    plan = GangPlan("llm-pretrain", 1, 128, source=JOB.name)
    job, gated = gangs.job_as_sent(plan), gangs.job(plan)
    held = {**gated, "spec": {**gated["spec"], "suspend": True}}
    resumed = {**gated, "spec": {**gated["spec"], "suspend": False}}
    return [
        RequestKind("nothing, the same CREATE (baseline)", prepared(url, NOTHING_PATH, create), b'"allowed":true'),
        RequestKind("mutate a CREATE", prepared(url, MUTATE_PATH, create), b'"patchType"'),
        RequestKind("mutate an UPDATE that suspends", prepared(url, MUTATE_PATH, update), b'"patchType"'),
        RequestKind("validate a CREATE", prepared(url, VALIDATE_PATH, review("CREATE", old, None)), b'"allowed":true'),
        RequestKind("mutate a Job's CREATE", prepared(url, MUTATE_PATH, review("CREATE", job, None)), b'"patchType"'),
        RequestKind(
            "mutate a Job's UPDATE that resumes",
            prepared(url, MUTATE_PATH, review("UPDATE", resumed, held)),
            b'"patchType"',
        ),
        RequestKind(
            "validate a Job's CREATE", prepared(url, VALIDATE_PATH, review("CREATE", gated, None)), b'"allowed":true'
        ),
        *pod_source_requests(url),
    ]


def pod_source_requests(url: str) -> list[RequestKind]:
    """A LeaderWorkerSet, and a pod of each source whose pods are gated one by one."""
    plan = gangs.single(LWS.name, "llm-serve", 128)
    parent, _ = gangs.lws_objects(plan, "")
    marked = inject.injected(parent, None, settings=Settings()).document
    found = [
        RequestKind(
            "mutate a LeaderWorkerSet's CREATE",
            prepared(url, MUTATE_PATH, review("CREATE", parent, None)),
            b'"patchType"',
        ),
        RequestKind(
            "validate a LeaderWorkerSet's CREATE",
            prepared(url, VALIDATE_PATH, review("CREATE", marked, None)),
            b'"allowed":true',
        ),
    ]
    for source in POD_SOURCES:
        plan = gangs.single(source, "llm", 128)
        pod = gangs.GangPods(gangs.workload(plan), 0.0, source=source).as_sent(1)
        pod["metadata"].setdefault("name", "llm-1")
        sent = prepared(url, BARRIER_POD_PATH, review("CREATE", pod, None))
        found.append(RequestKind(f"mutate a pod's CREATE, {source}", sent, b'"patchType"'))
    return found


def review(operation: str, new: Json, old: Json | None) -> bytes:
    group, _, version = new["apiVersion"].rpartition("/")
    kind = {"group": group, "version": version, "kind": new["kind"]}
    resource = {"group": group, "version": version, "resource": f"{new['kind'].lower()}s"}
    request = {
        "uid": "705ab4f5-6393-11e8-b7cc-42010a800002",
        "kind": kind,
        "resource": resource,
        "requestKind": kind,
        "requestResource": resource,
        "name": new["metadata"]["name"],
        "namespace": "default",
        "operation": operation,
        "userInfo": {"username": "someone@example.com", "groups": ["developers", "system:authenticated"]},
        "object": new,
        "oldObject": old,
        "dryRun": False,
        "options": {"kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1", "fieldValidation": "Strict"},
    }
    return msgspec.json.encode({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "request": request})


@asynccontextmanager
async def connections(url: str, tls: ssl.SSLContext, count: int) -> AsyncIterator[list[HttpConnection]]:
    """So many, open."""
    async with AsyncExitStack() as stack:
        yield [await stack.enter_async_context(HttpConnection(url, tls)) for _ in range(count)]


async def one_by_one(connection: HttpConnection, kinds: Sequence[RequestKind], times: int) -> dict[str, list[float]]:
    """Seconds of each request, by kind; in every round each kind once, in random order."""
    found: dict[str, list[float]] = {kind.name: [] for kind in kinds}
    rng = random.Random(3)  # noqa: S311 - the same order in every run
    for number in range(-10, times):
        for kind in rng.sample(kinds, len(kinds)):
            seconds, answer = await connection.post(kind.request)
            assert kind.says in answer, answer
            if number >= 0:  # the first rounds warm up
                found[kind.name].append(seconds)
    return found


async def saturated(
    server: Child, many: Sequence[HttpConnection], kinds: Sequence[RequestKind], *, slices: int, seconds: float
) -> dict[str, list[Saturation]]:
    """Each kind in slices of its own, the kinds taking turns."""
    found: dict[str, list[Saturation]] = {kind.name: [] for kind in kinds}
    for _ in range(slices):
        for kind in kinds:
            found[kind.name].append(await _slice(server, many, kind, seconds))
    return found


async def _slice(server: Child, many: Sequence[HttpConnection], kind: RequestKind, length: float) -> Saturation:
    times: list[float] = []

    async def loop(connection: HttpConnection) -> None:
        while not times or time.perf_counter() < end:  # a busy machine may take a short slice as a whole
            seconds, _ = await connection.post(kind.request)
            times.append(seconds)

    before = (await server.call("usage"))["cpu"]
    start = time.perf_counter()
    end = start + length
    await asyncio.gather(*map(loop, many))
    took = time.perf_counter() - start
    used = (await server.call("usage"))["cpu"] - before
    return Saturation(len(times) / took, used / took, times)


def latency_table(kinds: Sequence[RequestKind], times: dict[str, list[float]]) -> ResultTable:
    baseline = percentile(times[kinds[0].name], 99)
    limit = 2 * baseline + 0.005
    rows: list[list[Cell]] = []
    targets = []
    for kind in kinds:
        its = times[kind.name]
        worst = percentile(its, 99)
        size = len(kind.request) / 1024
        rows.append([kind.name, size, len(its), median(its) * 1e3, worst * 1e3, worst / baseline])
        if kind.name.startswith("mutate"):
            text = f"{kind.name}: p99 against 2 x that of doing nothing + 5 ms"
            targets.append(ResultTarget(text, worst * 1e3, limit * 1e3, " ms"))
    return ResultTable(
        name=f"{NAME}-latency",
        title="The webhook, one request at a time: a JobSet of three replicatedJobs, a Job, a LeaderWorkerSet, a pod",
        columns=["request", "KiB", "requests", "median ms", "p99 ms", "p99 x baseline"],
        rows=rows,
        targets=targets,
        notes=["one process, TLS, one kept-alive connection on loopback; the kinds take turns in random order"],
    )


def saturation_table(found: dict[str, list[Saturation]], length: float) -> ResultTable:
    rows: list[list[Cell]] = []
    for name, slices in found.items():
        times = [second for one in slices for second in one.seconds]
        rate = median([one.per_second for one in slices])
        busy = median([one.busy for one in slices])
        rows.append([name, rate, busy * 100, rate / busy, median(times) * 1e3, percentile(times, 99) * 1e3])
    return ResultTable(
        name=f"{NAME}-saturation",
        title=f"The webhook with {CONNECTIONS} connections that never pause",
        columns=["request", "requests/s", "server's CPU %", "requests per CPU s", "median ms", "p99 ms"],
        rows=rows,
        notes=[
            f"median of slices of {length:g} s, {min(map(len, found.values()))} for each kind, taking turns",
            "the client shares the machine: where the server's CPU is well below 100 %, the client was the limit",
        ],
    )
