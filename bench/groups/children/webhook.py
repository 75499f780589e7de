"""The shipped webhook, registered for the pods of the benchmark's namespaces."""

from __future__ import annotations

import asyncio

from bench.children import command_loop
from bench.children.command_loop import Json
from bench.groups import plan
from bench.groups.plan import Placer
from jobset_gate.cli import logs
from jobset_gate.cli.options import LogFormat, LogLevel
from jobset_gate.kube.access import from_kubeconfig
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, PODS
from jobset_gate.settings import Settings
from webhook.certs.serving import self_signed
from webhook.registration import pod_configuration
from webhook.server import serve


async def run(kubeconfig: str) -> Json:
    """Returns once it listens and is registered."""
    settings, bundle = Settings(), self_signed()
    server = await serve(settings, tls=bundle.serving)
    async with Client(await from_kubeconfig(kubeconfig), user_agent="webhook") as client:
        made = pod_configuration(settings.groups, url=server.url, ca_bundle=bundle.ca_bundle)
        await client.create(MUTATING_WEBHOOKS, made)
        probe = plan.pod(Placer.OURS, 0, 0)
        while not await _held(client, probe):  # noqa: ASYNC110 - nothing tells when an API server has read of us
            await asyncio.sleep(0.05)
    return {}


async def _held(client: Client, probe: Json) -> bool:
    return "schedulingGates" in (await client.create(PODS, probe, "default", dry_run=True))["spec"]


async def figures() -> Json:
    """What it has used."""
    return command_loop.usage()


async def main() -> None:
    """Serves until the parent goes."""
    logs.configure(LogFormat.JSON, LogLevel.WARNING)
    await command_loop.serve({"run": run, "figures": figures})


if __name__ == "__main__":
    asyncio.run(main())
