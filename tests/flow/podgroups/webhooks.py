"""The shipped webhook, registered for the namespaces of one stage: other tests share the API server."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, PODS, VALIDATING_WEBHOOKS
from jobset_gate.podgroups.formats import NAME_KEYS
from jobset_gate.settings import Settings
from tests.fakes.admission_server import WEBHOOK_TIMEOUT
from tests.fakes.podgroups.manifests import gated
from webhook import registration
from webhook.certs.serving import self_signed
from webhook.registration import pod_configuration
from webhook.server import WebhookServer, serve

Json = dict[str, Any]
PATIENCE = 60.0
BUNDLE = self_signed()


@asynccontextmanager
async def serve_webhook(
    client: Client, namespaces: Collection[str], folder: Path, settings: Settings, *, jobsets: bool = False
) -> AsyncIterator[WebhookServer]:
    """The webhook, once the API server asks it about pods; about JobSets too if reported so."""
    async with AsyncExitStack() as stack:
        server = await serve(settings, tls=BUNDLE.serving)
        stack.push_async_callback(server.stop)
        where: Json = {"url": server.url, "ca_bundle": BUNDLE.ca_bundle, "suffix": f"-{min(namespaces)}"}
        where["timeout_seconds"] = WEBHOOK_TIMEOUT
        made = [pod_configuration(settings.groups, **where)]
        made += registration.configurations(**where) if jobsets else ()
        for one in made:
            await _register(client, one, namespaces, stack)
        await _in_force(client, namespaces, settings)
        yield server


async def _register(client: Client, made: Json, namespaces: Collection[str], stack: AsyncExitStack) -> None:
    resource = MUTATING_WEBHOOKS if made["kind"].startswith("Mutating") else VALIDATING_WEBHOOKS
    only = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": sorted(namespaces)}
    for hook in made["webhooks"]:
        hook["namespaceSelector"] = {"matchExpressions": [only]}
    await client.create(resource, made)
    stack.push_async_callback(client.delete, resource, made["metadata"]["name"])


async def _in_force(client: Client, namespaces: Collection[str], settings: Settings) -> None:
    """Until a dry run of a pod that names a group comes back with our gate."""
    where, key = NAME_KEYS[settings.groups.ways[0]]
    container = {"name": "main", "image": "main"}
    scheduler = settings.groups.scheduler_names[0]
    probe = {
        "metadata": {"generateName": "probe-", where: {key: "probe"}},
        "spec": {"schedulerName": scheduler, "containers": [container]},
    }
    async with asyncio.timeout(PATIENCE):
        for namespace in namespaces:
            # Nothing tells when an API server has read its webhook configurations.
            while not gated(await client.create(PODS, probe, namespace, dry_run=True)):  # noqa: ASYNC110 - as said
                await asyncio.sleep(0.02)
