"""What a tenant, or a pod with nothing but a network, may send to webhook and controller: each as large as it can be.

Every attack is a context: it goes on while its block does, or is over when that ends. It gives the sockets that it
holds open. None needs a right beyond one namespace, and those at the ports need none at all.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count
from typing import Any
from urllib.parse import urlsplit

import msgspec
from typing_extensions import override

from bench.gangs import jobs, jobset, split
from bench.http_client import Unexpected, brief, prepared
from bench.scale import Scale
from bench.webhook import review
from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.resources import CONFIGMAPS, EVENTS, JOBS, JOBSETS, NODES, PODS
from jobset_gate.podgroups.model import Flavor, PodGroupKey, group_label
from jobset_gate_demo.fake import manifests
from webhook.registration import MUTATE_PATH

TENANT = "tenant"
TOKEN = "0123456789abcdefghijkl"  # noqa: S105 - it opens nothing
MIB = 1024 * 1024
AT_ONCE = 8
"""Requests of the attacker under way."""
READ_AFTER = 14.0
"""Seconds until a controller has asked for the Events of a namespace whose gang lacks pods."""

Json = dict[str, Any]
Sockets = list["_IdleConnection"]


@dataclass(frozen=True, slots=True)
class AttackTarget:
    """Where the programs listen, and the API server as the tenant reaches it."""

    scale: Scale
    webhook: str = ""
    tls: ssl.SSLContext | None = None
    stream: str = ""
    health: str = ""
    api: Client | None = None

    @property
    def cluster(self) -> Client:
        """For the attacks that go through the API server."""
        assert self.api is not None
        return self.api


Attack = Callable[[AttackTarget], AbstractAsyncContextManager[Sockets]]


@asynccontextmanager
async def nothing(_: AttackTarget) -> AsyncIterator[Sockets]:
    """The baseline."""
    yield []


# --- Through the API server ------------------------------------------------------------------------------------------


@asynccontextmanager
async def wide_pods(target: AttackTarget) -> AsyncIterator[Sockets]:
    """Made and deleted one after another, which passes a quota of one pod."""

    async def each(number: int) -> None:
        body = _member(f"wide-{number}", _affinity(number))
        await target.cluster.create(PODS, body, TENANT)
        await target.cluster.delete(PODS, body["metadata"]["name"], TENANT, grace_seconds=0)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(_each(map(each, range(target.scale.size(45, 2))), 1))
        yield []


@asynccontextmanager
async def wide_groups(target: AttackTarget) -> AsyncIterator[Sockets]:
    """They wait, and something changes on the nodes all the time: pods that name their node come and go."""
    free = {"allocatable": {"cpu": "8", "memory": "32Gi", "pods": "110"}}
    await _each(
        target.cluster.create(NODES, {"metadata": {"name": f"n{it}", "labels": {"zone": "a"}}, "status": free})
        for it in range(target.scale.size(500, 2))
    )
    many = range(target.scale.size(10, 1))
    await _each(target.cluster.create(PODS, _member(f"wide-{it}", _affinity(it)), TENANT) for it in many)

    async def change() -> None:
        for number in count():
            body = _plain(f"changes-{number}") | {"spec": {**_plain("x")["spec"], "nodeName": "n0"}}
            await target.cluster.create(PODS, body, TENANT)
            await target.cluster.delete(PODS, f"changes-{number}", TENANT, grace_seconds=0)
            await asyncio.sleep(0.1)

    async with _while(change()):
        yield []


@asynccontextmanager
async def long_events(target: AttackTarget) -> AsyncIterator[Sockets]:
    """On a Job of one's own, of a gang that lacks pods: then the controller reads them."""
    plan = split("lacking", 4, TENANT, lean=True)
    stored = await target.cluster.create(JOBSETS, jobset(plan))
    (made,) = [await target.cluster.create(JOBS, job) for job in jobs(stored)]
    about = {"kind": "Job", "name": made["metadata"]["name"], "namespace": TENANT, "uid": made["metadata"]["uid"]}
    body = {"involvedObject": about, "reason": "FailedCreate", "message": "x" * 1_400_000, "type": "Warning"}
    await _each(
        target.cluster.create(EVENTS, {"metadata": {"name": f"event-{it}"}, **body}, TENANT)
        for it in range(target.scale.size(150, 2))
    )
    yield []
    await asyncio.sleep(READ_AFTER * min(1.0, target.scale.factor * 10))


@asynccontextmanager
async def long_verdicts(target: AttackTarget) -> AsyncIterator[Sockets]:
    """Pods that carry what looks like a verdict and is as long as annotations may be."""

    async def each(number: int) -> None:
        body = _plain(f"long-{number}")
        said = f"timeout uid 0 0 TimedOut\n{number} " + "x" * 250_000
        body["metadata"] |= {
            "labels": {names.GATED: names.GATED_VALUE, names.JS_NAME: "forged"},
            "annotations": {names.VERDICT: said},
        }
        await target.cluster.create(PODS, body, TENANT)

    await _each(map(each, range(target.scale.size(600, 2))))
    yield []


@asynccontextmanager
async def large_config_maps(target: AttackTarget) -> AsyncIterator[Sockets]:
    """Of gangs that are not."""
    text = "timeout uid 0 0 TimedOut\n" + "x" * 1_000_000
    await _each(
        target.cluster.create(
            CONFIGMAPS,
            {
                "metadata": {"name": f"none-{it}{names.CONFIG_MAP_SUFFIX}", "labels": {names.GATE: names.GATE_VALUE}},
                "data": {names.KEY_VERDICT: f"{text}{it}"},
            },
            TENANT,
        )
        for it in range(target.scale.size(150, 2))
    )
    yield []


@asynccontextmanager
async def giant_gang(target: AttackTarget) -> AsyncIterator[Sockets]:
    """A suspended JobSet of a thousand million pods that do not exist; as many requests as are taken."""
    body = jobset(replace(split("giant", 100, TENANT, lean=True), token=TOKEN))
    body["spec"]["suspend"] = True
    body["spec"]["replicatedJobs"][0]["replicas"] = 10**9
    stored = await target.cluster.create(JOBSETS, body)
    path = f"/v1/gangs/{TENANT}/giant/{TOKEN}/{stored['metadata']['uid']}/0/0"
    heads = (f"GET {path}/{it:036} HTTP/1.1\r\nHost: x\r\n\r\n".encode() for it in range(target.scale.size(2000, 4)))
    async with _sockets(target.stream, heads) as held:
        yield held


@asynccontextmanager
async def many_devices(target: AttackTarget) -> AsyncIterator[Sockets]:
    """A JobSet whose one container names as many as fit, and that changes each second."""
    body = jobset(split("devices", 4, TENANT, lean=True))
    body["spec"]["suspend"] = True
    main = body["spec"]["replicatedJobs"][0]["template"]["spec"]["template"]["spec"]["containers"][0]
    asked = {f"x.com/{number}": f"{number}" for number in range(target.scale.kept(60_000, 10))}
    main["resources"] = {"limits": asked}
    await target.cluster.create(JOBSETS, body)

    async def change() -> None:
        for number in count():
            note = {"metadata": {"annotations": {"example.com/note": str(number)}}}
            await target.cluster.patch(JOBSETS, "devices", TENANT, body=note, patch=PatchType.MERGE, type=msgspec.Raw)
            await asyncio.sleep(1.0)

    async with _while(change()):
        yield []


# --- At the ports ----------------------------------------------------------------------------------------------------


def half_heads(port: str, many: int) -> Attack:
    """Connections that begin a request and never go on."""

    @asynccontextmanager
    async def attack(target: AttackTarget) -> AsyncIterator[Sockets]:
        url: str = getattr(target, port)
        async with _sockets(url, [b"GET /healthz HT"] * target.scale.size(many, 4), target.tls) as held:
            yield held

    return attack


@asynccontextmanager
async def half_bodies(target: AttackTarget) -> AsyncIterator[Sockets]:
    """Of reviews as large as they may be, all but the last byte."""
    request = prepared(target.webhook, MUTATE_PATH, b"[" * (int(6.9 * MIB)))[:-1]
    async with _sockets(target.webhook, [request] * target.scale.size(40, 2), target.tls) as held:
        yield held


def large_reviews(make: Callable[[Scale], Json]) -> Attack:
    """One JobSet of a tenant, tried again as soon as it is answered."""

    @asynccontextmanager
    async def attack(target: AttackTarget) -> AsyncIterator[Sockets]:
        request = prepared(target.webhook, MUTATE_PATH, review("CREATE", make(target.scale), None))

        async def send() -> None:
            assert target.tls is not None
            while True:
                with suppress(Unexpected, OSError, EOFError, TimeoutError, IndexError):  # refused, and how it likes
                    async with asyncio.timeout(60.0), brief(target.webhook, target.tls) as connection:
                        await connection.post(request)
                await asyncio.sleep(0.01)

        async with _while(send()):
            await asyncio.sleep(0.2)  # the first is there before anybody else
            yield []

    return attack


def many_keys(scale: Scale) -> Json:
    """A config of 0.85 MiB in which the last key stands twice."""
    many = scale.size(80_000, 10)
    keys = "".join(f'"k{number}":1,' for number in range(many))
    new = manifests.jobset("keys", TENANT, replicated_jobs=[manifests.replicated_job("a")])
    new["metadata"]["annotations"] = {names.CONFIG: f'{{{keys}"k{many - 1}":1}}'}
    return new


def many_jobs(scale: Scale) -> Json:
    """0.8 MiB of replicatedJobs; each would get a barrier."""
    template: Json = {"spec": {"template": {"spec": {}}}}
    made = [{"name": f"j{number}", "template": template} for number in range(scale.size(14_000, 10))]
    return manifests.jobset("jobs", TENANT, replicated_jobs=made, config={names.TIMEOUT_FIELD: 600})


# --- Details ---------------------------------------------------------------------------------------------------------


def _plain(name: str) -> Json:
    main = manifests.container("main", "busybox", resources={"requests": {"cpu": "1m"}})
    return {"metadata": {"name": name, "namespace": TENANT}, "spec": {"containers": [main]}}


def _member(name: str, affinity: Json) -> Json:
    """A pod of a group of one, as the webhook would have taken it."""
    body = _plain(name)
    group = PodGroupKey(flavor=Flavor.ALIBABA, namespace=TENANT, name=name)
    body["metadata"]["labels"] = {
        names.ALIBABA_NAME: name,
        names.ALIBABA_MINIMUM: "1",
        names.POD_GROUP_LABEL: group_label(group),
    }
    body["spec"] |= {"affinity": affinity, "schedulingGates": [{"name": names.POD_GROUP_GATE}]}
    body["spec"] |= {"schedulerName": names.DEFAULT_SCHEDULER}
    return body


def _affinity(number: int) -> Json:
    """120,000 values; the last is that of the nodes."""
    values = [f"{number}-{it:x}" for it in range(120_000)] + ["a"]
    term = {"matchExpressions": [{"key": "zone", "operator": "In", "values": values}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}}


async def _each(work: Iterable[Awaitable[Any]], at_once: int = AT_ONCE) -> None:
    """A few at a time, and no more of them than that in memory."""
    left = iter(work)

    async def worker() -> None:
        for one in left:
            await one

    await asyncio.gather(*(worker() for _ in range(at_once)))


@asynccontextmanager
async def _while(work: Any) -> AsyncIterator[None]:
    """It goes on while the block does."""
    task = asyncio.create_task(work)
    try:
        yield
        if task.done():
            await task
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


class _IdleConnection(asyncio.Protocol):
    """One connection; `open` until the other side ends it."""

    def __init__(self) -> None:
        self.open = False
        self.transport: asyncio.Transport | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport, self.open = transport, True

    @override
    def eof_received(self) -> None:
        self.open = False

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False


@asynccontextmanager
async def _sockets(url: str, said: Iterable[bytes], tls: ssl.SSLContext | None = None) -> AsyncIterator[Sockets]:
    """One connection for each text, which is sent; a port may refuse any of them."""
    where, held, loop = urlsplit(url), list[_IdleConnection](), asyncio.get_running_loop()
    host, port, secured = str(where.hostname), int(where.port or 80), tls if where.scheme == "https" else None

    async def each(text: bytes) -> None:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(10.0):
                transport, one = await loop.create_connection(_IdleConnection, host, port, ssl=secured)
                held.append(one)
                transport.write(text)

    await _each(map(each, said))
    try:
        yield held
    finally:
        for one in held:
            if one.transport is not None:
                one.transport.abort()
