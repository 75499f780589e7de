"""What `webhook` does: the door, with its certificate, until it is told to stop; registered if that is asked for."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.serve import process, registration
from jobset_gate.cli.signals import run_service
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import SECRETS
from jobset_gate.settings import Settings
from webhook.certs import self_signed
from webhook.certs.ca import certificates
from webhook.certs.ca_injector import OF_PODS, CaInjector
from webhook.certs.ca_secret import CaSecretStore
from webhook.certs.controller import CertificateController
from webhook.certs.rollover import Rollover
from webhook.certs.rotation import RotationPolicy
from webhook.certs.sources import CertSource, FileSource, OwnCaSource
from webhook.certs.watcher import CertificateWatcher, ServingCertificate
from webhook.metrics import WebhookMetrics
from webhook.server import WebhookServer, serve


@dataclass(frozen=True, slots=True)
class CertificateFiles:
    """Certificate, key and CA in files; without them a certificate is made here."""

    certificate: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    """What the API server shall trust."""


@dataclass(frozen=True, slots=True)
class TrustOptions:
    """Who looks after the API server's trust in the certificate: we do if it is `kept`."""

    managed: bool = False
    own_ca: str | None = None
    """The Secret of our own CA."""
    publish: bool = False
    """The CA in the file goes into caBundle."""
    ca_life: timedelta = timedelta(days=365)
    leaf_life: timedelta = timedelta(days=7)


def serving_certificate(
    pems: CertificateFiles, hosts: Sequence[str], *, kept: bool
) -> tuple[ServingCertificate, str | None]:
    """What to serve to begin with, and the caBundle to register; None: it is somebody else's, or trusted anyway."""
    if pems.certificate is None or pems.key is None:
        made = self_signed.make(list(dict.fromkeys([*hosts, *self_signed.LOOPBACK])), days=365)
        return ServingCertificate(made.pair), None if kept else made.ca_bundle
    try:
        found = CertificateWatcher(pems.certificate, pems.key)
    except ssl.SSLError as problem:
        told = f"no certificate with its key: {getattr(problem, 'reason', None) or problem}"
        raise CommandError(f"{pems.certificate}, {pems.key}: {told}") from problem
    if pems.ca is None:
        return found, None
    ca = pems.ca.read_bytes()
    if not certificates(ca):
        raise CommandError(f"{pems.ca}: no certificate in it")
    # Looked after from here on, the files are not followed on their own: a new pair waits until it is trusted.
    return found, b64encode(ca).decode()


def certificate_controller(
    client: Client,
    slot: ServingCertificate,
    metrics: WebhookMetrics,
    *,
    pems: CertificateFiles,
    trust: TrustOptions,
    service: str,
    pods: bool,
) -> CertificateController:
    """Looks after the certificate in `slot`, which the API server asks for under the Service's name.

    `pods`: whether it may ask about pods, too.
    """
    published = CaInjector(client, optional=OF_PODS if pods else ())
    its, terms = registration.service(service), RotationPolicy(ca_life=trust.ca_life, leaf_life=trust.leaf_life)
    own = trust.own_ca is not None
    handover = Rollover(slot, f"{its.name}.{its.namespace}.svc", terms.settling, provisional=own)
    source: CertSource
    if trust.own_ca is not None:
        secret = CaSecretStore(client, its.namespace, trust.own_ca)
        changed = metrics.certificate_changes
        source = OwnCaSource(secret, hosts(service), terms, _now, lambda what: changed.labels(what).inc())
        watched = [(SECRETS, its.namespace, trust.own_ca)]
        return CertificateController(client, published, source, handover, metrics=metrics, extra_watches=watched)
    assert isinstance(slot, CertificateWatcher)  # noqa: S101 - without an own CA there are files; this tells the type checker
    source = FileSource(slot.read, pems.ca if trust.publish else None, _now)
    return CertificateController(client, published, source, handover, metrics=metrics)


def hosts(service: str) -> list[str]:
    """The names of a Service, the one that API servers use first."""
    its = registration.service(service)
    return [f"{its.name}.{its.namespace}.svc", f"{its.name}.{its.namespace}.svc.cluster.local"]


def _now() -> datetime:
    return datetime.now(UTC)


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
        return [*([named] if named else []), *(hosts(self.service) if self.service else [])]


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
        slot, ca_bundle = serving_certificate(pems, [*own, *register.hosts], kept=trust.managed)
        ready, metrics = _Readiness("not registered yet" if register.enabled else None), WebhookMetrics()
        process.register_metrics(metrics.registry, "webhook")
        client = await stack.enter_async_context(_client(register)) if register.enabled or trust.managed else None
        if trust.managed and client is not None and register.service:
            ready.certificates = certificate_controller(
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
