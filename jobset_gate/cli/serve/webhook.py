"""What `webhook` does: the door, with its certificate, until it is told to stop; registered if that is asked for."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from jobset_gate.cli.serve import certificates, program_metrics, registration
from jobset_gate.cli.serve.certificates import CertificateFiles, TrustOptions
from jobset_gate.cli.signals import run_service
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.settings import Settings
from webhook.certs.controller import CertificateController
from webhook.metrics import WebhookMetrics
from webhook.server import WebhookServer, serve


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Where the door is, and how it closes."""

    host: str
    port: int
    notice: float = 0.0
    """Seconds between being told to stop and closing the door."""


@dataclass(frozen=True, slots=True)
class RegisterOptions:
    """Whether and how API servers are told, and which."""

    enabled: bool = False
    url: str | None = None
    service: str | None = None
    remove: bool = False
    kubeconfig: str | None = None
    context: str | None = None

    @property
    def hosts(self) -> list[str]:
        """The names under which an API server will look for the door."""
        named = urlsplit(self.url).hostname if self.url else None
        return [*([named] if named else []), *(certificates.hosts(self.service) if self.service else [])]


@dataclass(slots=True)
class _Readiness:
    why_not: str | None = field(default=None)
    certificates: CertificateController | None = field(default=None)

    def __call__(self) -> str | None:
        return self.why_not or (self.certificates.not_ready_reason() if self.certificates else None)


async def run(
    settings: Settings, listen: ListenOptions, register: RegisterOptions, pems: CertificateFiles, trust: TrustOptions
) -> None:
    """Until SIGTERM or SIGINT. Raises Failed, OSError (a port that is taken), and what registering raises."""
    await run_service(_serve(settings, listen, register, pems, trust))


async def _serve(
    settings: Settings, listen: ListenOptions, register: RegisterOptions, pems: CertificateFiles, trust: TrustOptions
) -> None:
    async with AsyncExitStack() as stack:
        own = [listen.host] if listen.host not in ("", "0.0.0.0", "::") else []  # noqa: S104 - to leave it out
        slot, ca_bundle = certificates.serving_certificate(pems, [*own, *register.hosts], kept=trust.managed)
        ready, metrics = _Readiness("not registered yet" if register.enabled else None), WebhookMetrics()
        program_metrics.describe(metrics.registry, "webhook")
        client = await stack.enter_async_context(_client(register)) if register.enabled or trust.managed else None
        if trust.managed and client is not None and register.service:
            ready.certificates = certificates.certificate_controller(
                client, slot, metrics, pems=pems, trust=trust, service=register.service, pods=settings.groups.enabled
            )
        server = await serve(
            settings,
            host=listen.host,
            port=listen.port,
            tls=slot,
            ready=ready,
            metrics=metrics,
            follow=not trust.managed,
        )
        stack.push_async_callback(server.stop, notice=listen.notice)
        if register.enabled and client is not None:
            await stack.enter_async_context(_registered(client, settings, register, server, ca_bundle))
            ready.why_not = None
        await (ready.certificates.run() if ready.certificates else asyncio.Event().wait())


@asynccontextmanager
async def _client(register: RegisterOptions) -> AsyncIterator[Client]:
    reached = await access.load_access(register.kubeconfig, register.context)
    async with Client(reached, user_agent="jobset-gate-webhook") as client:
        yield client


@asynccontextmanager
async def _registered(
    client: Client, settings: Settings, register: RegisterOptions, server: WebhookServer, ca_bundle: str | None
) -> AsyncIterator[None]:
    where: dict[str, Any] = {"url": register.url or server.url}
    if register.service:
        service = registration.service(register.service)
        where = {"service": service, "own_namespace": service.namespace}
    made = await registration.register(client, settings.groups, ca_bundle=ca_bundle, **where)
    try:
        yield
    finally:
        if register.remove:
            await registration.unregister(client, made)
