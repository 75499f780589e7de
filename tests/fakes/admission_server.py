"""A webhook of the test's own, on a free port, and a client that trusts it."""

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any

import aiohttp

from jobset_gate import names
from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import Invalid
from jobset_gate.kube.resources import (
    JOBSETS,
    LEADER_WORKER_SETS,
    MUTATING_WEBHOOKS,
    PODS,
    VALIDATING_WEBHOOKS,
    Resource,
)
from jobset_gate.settings import Settings
from tests.fakes import leader_worker_sets, start_groups
from tests.fakes.grouped_pods import pod
from tests.fakes.jobsets import Json, changed, jobset
from tests.fakes.wire_objects import owner
from webhook import registration
from webhook.certs.serving import self_signed
from webhook.registration import HookOptions, barrier_pod_configuration, pod_configuration
from webhook.server import WebhookServer, serve

BUNDLE = self_signed()
WEBHOOK_TIMEOUT = 30
"""The longest that an API server allows: the webhook, or another process of the test, may be short of CPU."""
Registered = AbstractAsyncContextManager[WebhookServer]


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


class AdmittedObjects:
    """Objects of one kind in the namespace for which a webhook is registered."""

    def __init__(self, client: Client, namespace: str, server: WebhookServer, resource: Resource) -> None:
        self.client, self.namespace, self.server, self.resource = client, namespace, server, resource
        self.counter = RequestCounter(server)

    def here(self, manifest: Json) -> Json:
        return changed(manifest, self.namespace, "metadata", "namespace")

    async def create(self, manifest: Json, **more: Any) -> Json:
        return await self.client.create(self.resource, self.here(manifest), self.namespace, **more)

    async def patch(self, name: str, body: Any, patch: PatchType = PatchType.MERGE, **more: Any) -> Json:
        return await self.client.patch(self.resource, name, self.namespace, body=body, patch=patch, **more)

    async def delete(self, name: str) -> None:
        await self.client.delete(self.resource, name, self.namespace)


def limited(configuration: dict[str, Any], namespace: str) -> dict[str, Any]:
    """The configuration for one namespace alone: other tests share the API server."""
    for hook in configuration["webhooks"]:
        hook["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return configuration


def registered(client: Client, namespace: str, settings: Settings | None = None) -> Registered:
    """A webhook that is registered for the JobSets of one namespace, once an API server asks it about them."""
    probe = jobset(name="probe")
    probe["metadata"]["namespace"] = namespace

    async def ask() -> None:
        with suppress(Invalid):  # the validating one was read first, and misses the other's work
            await client.create(JOBSETS, probe, namespace, dry_run=True)

    gangs = (settings or Settings()).gangs
    return _registered(client, namespace, settings, lambda where: registration.configurations(gangs, **where), ask)


def registered_for_pods(client: Client, namespace: str, settings: Settings | None = None) -> Registered:
    """The same for the pods of groups."""
    groups = (settings or Settings()).groups

    async def ask() -> None:
        for way in groups.ways:
            await client.create(PODS, pod(way, schedulerName=groups.scheduler_names[0]), namespace, dry_run=True)

    return _registered(client, namespace, settings, lambda where: [pod_configuration(groups, **where)], ask)


def registered_for_start_groups(client: Client, namespace: str, settings: Settings) -> Registered:
    """The same for the pods of start groups."""

    async def ask() -> None:
        probe = start_groups.pod("probe", owner("StatefulSet", "set", "u"))
        await client.create(PODS, probe, namespace, dry_run=True)

    gangs = settings.gangs
    return _registered(client, namespace, settings, lambda where: [barrier_pod_configuration(gangs, **where)], ask)


def registered_for_leader_worker_sets(client: Client, namespace: str, settings: Settings) -> Registered:
    """The same for LeaderWorkerSets and the pods of their groups."""

    async def ask() -> None:
        probe = leader_worker_sets.leader_worker_set(notes={names.CONFIG: "{}"})
        probe["metadata"] |= {"name": "probe", "namespace": namespace}
        with suppress(Invalid):  # the validating one was read first, and misses the other's work
            await client.create(LEADER_WORKER_SETS, probe, namespace, dry_run=True)
        await client.create(PODS, leader_worker_sets.pod(), namespace, dry_run=True)

    def made(where: HookOptions) -> list[dict[str, Any]]:
        pods = barrier_pod_configuration(settings.gangs, **where)
        return [*registration.configurations(settings.gangs, **where), pods]

    return _registered(client, namespace, settings, made, ask)


@asynccontextmanager
async def _registered(
    client: Client,
    namespace: str,
    settings: Settings | None,
    make: Callable[[HookOptions], Iterable[dict[str, Any]]],
    ask: Callable[[], Awaitable[None]],
) -> AsyncIterator[WebhookServer]:
    """Nothing tells when an API server has read its configurations but a request that comes to all these webhooks."""
    async with admission_server(settings) as server:
        where: HookOptions = {
            "url": server.url,
            "ca_bundle": BUNDLE.ca_bundle,
            "suffix": f"-{namespace}",
            "timeout_seconds": WEBHOOK_TIMEOUT,
        }
        made = [limited(it, namespace) for it in make(where)]
        stored = [(VALIDATING_WEBHOOKS if it["kind"].startswith("V") else MUTATING_WEBHOOKS, it) for it in made]
        for resource, configuration in stored:
            await client.create(resource, configuration)
        try:
            counted, sent = RequestCounter(server), 0
            while sent < len(stored):
                await ask()
                sent = counted.sent()
            yield server
        finally:
            for resource, configuration in stored:
                await client.delete(resource, configuration["metadata"]["name"])
