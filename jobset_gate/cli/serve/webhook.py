"""Runs the webhook with its certificate until a signal; registers it if the command line says so."""

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
from jobset_gate.cli.logs import log_signal
from jobset_gate.cli.runner import run_service
from jobset_gate.cli.serve import process, registration
from jobset_gate.kube import access
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import SECRETS
from jobset_gate.settings import Settings
from webhook.certs.ca import certificates
from webhook.certs.ca_injector import OF_PODS, CaInjector
from webhook.certs.ca_secret import CaSecretStore
from webhook.certs.controller import CertificateController
from webhook.certs.rollover import Rollover
from webhook.certs.rotation import RotationPolicy
from webhook.certs.serving import LOOPBACK, ServingCertificate, ServingFiles, self_signed
from webhook.certs.sources import FileSource, OwnCaSource
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
    """Who manages the API servers' trust in the certificate: we do if `managed`."""

    managed: bool = False
    own_ca: str | None = None
    """The Secret of our own CA."""
    publish: bool = False
    """The CA in the file goes into caBundle."""
    ca_life: timedelta = timedelta(days=365)
    leaf_life: timedelta = timedelta(days=7)


@dataclass(frozen=True, slots=True)
class _Serving:
    """What is served at the start, and its caBundle."""

    certificate: ServingCertificate
    files: ServingFiles | None = None
    """Where the certificate is read again; None: it was generated."""
    ca: Path | None = None
    ca_bundle: str | None = None
    """What to register; None: it is managed elsewhere, or API servers trust the certificate anyway."""


def _serving(pems: CertificateFiles, hosts: Sequence[str], *, managed: bool) -> _Serving:
    if pems.certificate is None or pems.key is None:
        made = self_signed(list(dict.fromkeys([*hosts, *LOOPBACK])), days=365)
        return _Serving(ServingCertificate(made.pair), ca_bundle=None if managed else made.ca_bundle)
    try:
        files = ServingFiles(pems.certificate, pems.key)
    except ssl.SSLError as problem:
        reason = f"no certificate with its key: {getattr(problem, 'reason', None) or problem}"
        raise CommandError(f"{pems.certificate}, {pems.key}: {reason}") from problem
    if pems.ca is None:
        return _Serving(files.serving, files)
    ca = pems.ca.read_bytes()
    if not certificates(ca):
        raise CommandError(f"{pems.ca}: no certificate in it")
    return _Serving(files.serving, files, pems.ca, b64encode(ca).decode())


def _certificate_controller(
    client: Client, serving: _Serving, metrics: WebhookMetrics, trust: TrustOptions, *, service: str, pods: bool
) -> CertificateController:
    """Manages the certificate for the Service's name. `pods`: whether there may be a configuration for pods, too."""
    injector = CaInjector(client, optional=OF_PODS if pods else ())
    its, policy = registration.service(service), RotationPolicy(ca_life=trust.ca_life, leaf_life=trust.leaf_life)
    own = trust.own_ca is not None
    rollover = Rollover(serving.certificate, f"{its.name}.{its.namespace}.svc", policy.settling, provisional=own)
    if trust.own_ca is not None:
        secret = CaSecretStore(client, its.namespace, trust.own_ca)
        changed = metrics.certificate_changes
        own_ca = OwnCaSource(secret, hosts(service), policy, _now, lambda what: changed.labels(what).inc())
        watched = [(SECRETS, its.namespace, trust.own_ca)]
        return CertificateController(client, injector, own_ca, rollover, metrics=metrics, extra_watches=watched)
    assert serving.files is not None  # noqa: S101 - without an own CA there are files; this tells the type checker
    files = FileSource(serving.files.certificate, serving.files.key, serving.ca if trust.publish else None, _now)
    return CertificateController(client, injector, files, rollover, metrics=metrics)


def hosts(service: str) -> list[str]:
    """The names of a Service, the one that API servers use first."""
    its = registration.service(service)
    return [f"{its.name}.{its.namespace}.svc", f"{its.name}.{its.namespace}.svc.cluster.local"]


def _now() -> datetime:
    return datetime.now(UTC)


@dataclass(frozen=True, slots=True)
class ListenOptions:
    """Where the webhook listens, and how it stops."""

    host: str
    port: int
    notice: float = 0.0
    """Seconds between the signal and the stop."""


@dataclass(frozen=True, slots=True)
class RegisterOptions:
    """Whether and how the webhook configurations are written, and to which API server."""

    enabled: bool = False
    url: str | None = None
    service: str | None = None
    remove: bool = False
    kubeconfig: str | None = None
    context: str | None = None

    @property
    def hosts(self) -> list[str]:
        """The host names under which an API server calls the webhook."""
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
    await run_service(_serve(settings, listen, register, pems, trust), log_signal)


async def _serve(
    settings: Settings, listen: ListenOptions, register: RegisterOptions, pems: CertificateFiles, trust: TrustOptions
) -> None:
    async with AsyncExitStack() as stack:
        own = [listen.host] if listen.host not in ("", "0.0.0.0", "::") else []  # noqa: S104 - to leave it out
        serving = _serving(pems, [*own, *register.hosts], managed=trust.managed)
        ready, metrics = _Readiness("not registered yet" if register.enabled else None), WebhookMetrics()
        process.register_metrics(metrics.registry, "webhook")
        client = await stack.enter_async_context(_client(register)) if register.enabled or trust.managed else None
        if trust.managed and client is not None and register.service:
            pods = settings.groups.enabled
            ready.certificates = _certificate_controller(
                client, serving, metrics, trust, service=register.service, pods=pods
            )
        server = await serve(
            settings, host=listen.host, port=listen.port, tls=serving.certificate, ready=ready, metrics=metrics
        )
        stack.push_async_callback(server.stop, notice=listen.notice)
        if register.enabled and client is not None:
            await stack.enter_async_context(_registered(client, settings, register, server, serving.ca_bundle))
            ready.why_not = None
        await _keep_certificate(ready.certificates, serving.files, metrics)


async def _keep_certificate(
    controller: CertificateController | None, files: ServingFiles | None, metrics: WebhookMetrics
) -> None:
    """Until cancelled. With a controller, new files are served only when they are trusted; else at once."""
    if controller is not None:
        await controller.run()
    elif files is not None:
        await files.run(on_reload=lambda ok: metrics.certificate_reloads.labels("ok" if ok else "failed").inc())
    else:
        await asyncio.Event().wait()


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
