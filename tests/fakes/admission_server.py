"""A webhook of the test's own, on a free port, and a client that trusts it."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

import aiohttp

from jobset_gate import names
from jobset_gate.kube.client import Client
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import JOBSETS, LEADER_WORKER_SETS, MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS
from jobset_gate.settings import Settings
from tests.fakes import leader_worker_sets, start_groups
from tests.fakes.grouped_pods import pod
from tests.fakes.jobsets import jobset
from tests.fakes.wire_objects import owner
from webhook import registration
from webhook.certs.serving import self_signed
from webhook.registration import HookOptions, barrier_pod_configuration, pod_configuration
from webhook.server import WebhookServer, serve

BUNDLE = self_signed()
WEBHOOK_TIMEOUT = 30
"""The longest that an API server allows: the webhook, or another process of the test, may be short of CPU."""


@asynccontextmanager
async def admission_server(settings: Settings | None = None, **more: Any) -> AsyncIterator[WebhookServer]:
    server = await serve(settings or Settings(), **({"tls": BUNDLE.serving} | more))
    try:
        yield server
    finally:
        await server.stop()


def trusting(ca: bytes = BUNDLE.ca) -> ssl.SSLContext:
    return ssl.create_default_context(cadata=ca.decode())


@asynccontextmanager
async def client(
    server: WebhookServer, context: Callable[[], ssl.SSLContext] = trusting
) -> AsyncIterator[aiohttp.ClientSession]:
    connector = aiohttp.TCPConnector(ssl=context())
    async with aiohttp.ClientSession(server.url, connector=connector) as session:
        yield session


class RequestCounter:
    """How many admission requests an API server has sent."""

    def __init__(self, server: WebhookServer) -> None:
        self._registry = server.metrics.registry
        self._seen = self._total()

    def sent(self) -> int:
        """Since the last call."""
        before, self._seen = self._seen, self._total()
        return int(self._seen - before)

    def both_called(self) -> bool:
        """Whether both webhooks were. An API server whose view of the object was old asks both of them again."""
        sent = self.sent()
        return sent > 0 and sent % 2 == 0

    def _total(self) -> float:
        metrics = [it for it in self._registry.collect() if it.name == "jobset_gate_admission"]
        return sum(sample.value for it in metrics for sample in it.samples if sample.name.endswith("_total"))


def limited(configuration: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The configuration for one namespace alone: other tests share the API server."""
    for hook in configuration["webhooks"]:
        hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return configuration


@asynccontextmanager
async def registered(client: Client, namespace: str, settings: Settings | None = None) -> AsyncIterator[WebhookServer]:
    """A webhook that is registered for the JobSets of one namespace, once an API server asks it about them."""
    probe = jobset(name="probe")
    probe["metadata"]["namespace"] = namespace

    async def ask() -> None:
        with suppress(Invalid):  # the validating one was read first, and misses the other's work
            await client.create(JOBSETS, probe, namespace, dry_run=True)

    async with admission_server(settings) as server:
        made = registration.configurations((settings or Settings()).gangs, **_where(server, namespace))
        async with _in_force(client, server, [limited(it, namespace) for it in made], ask):
            yield server


@asynccontextmanager
async def registered_for_pods(
    client: Client, namespace: str, settings: Settings | None = None
) -> AsyncIterator[WebhookServer]:
    """The same for the pods of groups."""
    groups = (settings or Settings()).groups

    async def ask() -> None:
        for way in groups.ways:
            await client.create(PODS, pod(way, schedulerName=groups.scheduler_names[0]), namespace, dry_run=True)

    async with admission_server(settings) as server:
        made = pod_configuration(groups, **_where(server, namespace))
        async with _in_force(client, server, [limited(made, namespace)], ask):
            yield server


@asynccontextmanager
async def registered_for_start_groups(
    client: Client, namespace: str, settings: Settings
) -> AsyncIterator[WebhookServer]:
    """The same for the pods of start groups."""

    async def ask() -> None:
        probe = start_groups.pod("probe", owner("StatefulSet", "set", "u"))
        await client.create(PODS, probe, namespace, dry_run=True)

    async with admission_server(settings) as server:
        made = barrier_pod_configuration(settings.gangs, **_where(server, namespace))
        async with _in_force(client, server, [limited(made, namespace)], ask):
            yield server


@asynccontextmanager
async def registered_for_leader_worker_sets(
    client: Client, namespace: str, settings: Settings
) -> AsyncIterator[WebhookServer]:
    """The same for LeaderWorkerSets and the pods of their groups."""

    async def ask() -> None:
        probe = leader_worker_sets.leader_worker_set(notes={names.CONFIG: "{}"})
        probe["metadata"] |= {"name": "probe", "namespace": namespace}
        with suppress(Invalid):  # the validating one was read first, and misses the other's work
            await client.create(LEADER_WORKER_SETS, probe, namespace, dry_run=True)
        await client.create(PODS, leader_worker_sets.pod(), namespace, dry_run=True)

    async with admission_server(settings) as server:
        where = _where(server, namespace)
        made = [
            *registration.configurations(settings.gangs, **where),
            barrier_pod_configuration(settings.gangs, **where),
        ]
        async with _in_force(client, server, [limited(it, namespace) for it in made], ask):
            yield server


def _where(server: WebhookServer, namespace: str) -> HookOptions:
    suffix = f"-{namespace}"
    return {"url": server.url, "ca_bundle": BUNDLE.ca_bundle, "suffix": suffix, "timeout_seconds": WEBHOOK_TIMEOUT}


@asynccontextmanager
async def _in_force(
    client: Client, server: WebhookServer, made: Sequence[dict[str, Any]], ask: Callable[[], Awaitable[None]]
) -> AsyncIterator[None]:
    """Nothing tells when an API server has read its configurations but a request that comes to all these webhooks."""
    stored = [(VALIDATING_WEBHOOKS if it["kind"].startswith("V") else MUTATING_WEBHOOKS, it) for it in made]
    for resource, configuration in stored:
        await client.create(resource, configuration)
    try:
        counted, sent = RequestCounter(server), 0
        while sent < len(stored):
            await ask()
            sent = counted.sent()
        yield
    finally:
        for resource, configuration in stored:
            await client.delete(resource, configuration["metadata"]["name"])
