"""Runs the webhook with its certificate until a signal; registers it if the command line says so."""

import asyncio
import ssl
from base64 import b64encode
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any

from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.logs import log_signal
from jobset_gate.cli.runner import run_service
from jobset_gate.cli.serve import process, registration
from jobset_gate.cli.serve.webhook_options import WebhookOptions
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import SECRETS
from jobset_gate.settings import Settings
from webhook.certs.ca import certificates
from webhook.certs.ca_injector import OF_BARRIER_PODS, OF_PODS, CaInjector
from webhook.certs.controller import CertificateController
from webhook.certs.rotation import RotationPolicy
from webhook.certs.serving import LOOPBACK, Rollover, ServingCertificate, ServingFiles, self_signed
from webhook.certs.sources import CaSecretStore, FileSource, OwnCaSource
from webhook.metrics import WebhookMetrics
from webhook.server import WebhookServer, serve


def _serving(options: WebhookOptions) -> tuple[ServingCertificate, ServingFiles | None, str | None]:
    """What is served at the start, the files that it is read from again, and the caBundle to register.

    No caBundle: it is managed elsewhere, or API servers trust the certificate anyway.
    """
    if options.tls_cert is None or options.tls_key is None:
        made = self_signed(list(dict.fromkeys([*options.hosts, *LOOPBACK])), days=365)
        return ServingCertificate(made.pair), None, None if options.manages_trust else made.ca_bundle
    try:
        files = ServingFiles(options.tls_cert, options.tls_key)
    except ssl.SSLError as problem:
        reason = f"no certificate with its key: {getattr(problem, 'reason', None) or problem}"
        raise CommandError(f"{options.tls_cert}, {options.tls_key}: {reason}") from problem
    ca = options.tls_ca.read_bytes() if options.tls_ca else None
    if ca is not None and not certificates(ca):
        raise CommandError(f"{options.tls_ca}: no certificate in it")
    return files.serving, files, None if ca is None else b64encode(ca).decode()


def _certificate_controller(
    client: Client, serving: ServingCertificate, metrics: WebhookMetrics, options: WebhookOptions, settings: Settings
) -> CertificateController | None:
    """Manages the certificate for the Service's name. The configurations for pods are optional, by the settings."""
    if not options.service:
        return None
    of_pods = (
        *(OF_PODS if settings.groups.enabled else ()),
        *(OF_BARRIER_PODS if settings.gangs.gates_pods else ()),
    )
    injector, its = CaInjector(client, optional=of_pods), registration.service(options.service)
    policy = RotationPolicy(ca_life=timedelta(days=options.ca_days), leaf_life=timedelta(hours=options.leaf_hours))
    own, hosts = options.own_ca is not None, options.service_hosts
    rollover = Rollover(serving, hosts[0], policy.settling, provisional=own)
    if options.own_ca is not None:
        secret, changed = CaSecretStore(client, its.namespace, options.own_ca), metrics.certificate_changes
        own_ca = OwnCaSource(secret, hosts, policy, _now, lambda what: changed.labels(what).inc())
        watched = [(SECRETS, its.namespace, options.own_ca)]
        return CertificateController(client, injector, own_ca, rollover, metrics=metrics, extra_watches=watched)
    assert options.tls_cert is not None  # noqa: S101 - without an own CA there are files; this tells the type checker
    assert options.tls_key is not None  # noqa: S101 - the same
    files = FileSource(options.tls_cert, options.tls_key, options.tls_ca if options.publish_ca else None, _now)
    return CertificateController(client, injector, files, rollover, metrics=metrics)


def _now() -> datetime:
    return datetime.now(UTC)


async def run(settings: Settings, options: WebhookOptions, cluster: ClusterOptions) -> None:
    """Until SIGTERM or SIGINT. Raises CommandError, OSError (a port that is taken), and what registering raises."""
    await run_service(_serve(settings, options, cluster), log_signal)


async def _serve(settings: Settings, options: WebhookOptions, cluster: ClusterOptions) -> None:
    async with AsyncExitStack() as stack:
        serving, files, ca_bundle = _serving(options)
        metrics, registered, controller = WebhookMetrics(), asyncio.Event(), None
        process.register_metrics(metrics.registry, "webhook")
        client = None
        if options.register or options.manages_trust:
            reached = await cluster.load_access()
            client = await stack.enter_async_context(Client(reached, user_agent="jobset-gate-webhook"))
        if options.manages_trust and client is not None:
            controller = _certificate_controller(client, serving, metrics, options, settings)

        def not_ready() -> str | None:
            if options.register and not registered.is_set():
                return "not registered yet"
            return controller.not_ready_reason() if controller else None

        server = await serve(
            settings, host=options.host, port=options.port, tls=serving, ready=not_ready, metrics=metrics
        )
        stack.push_async_callback(server.stop, notice=options.shutdown_delay)
        if options.register and client is not None:
            await stack.enter_async_context(_registered(client, settings, options, server, ca_bundle))
            registered.set()
        # With a controller, new files are served only when they are trusted; else at once.
        if controller is not None:
            await controller.run()
        elif files is not None:
            await files.run(on_reload=lambda ok: metrics.certificate_reloads.labels("ok" if ok else "failed").inc())
        else:
            await asyncio.Event().wait()


@asynccontextmanager
async def _registered(
    client: Client, settings: Settings, options: WebhookOptions, server: WebhookServer, ca_bundle: str | None
) -> AsyncIterator[None]:
    where: dict[str, Any] = {"url": options.url or server.url}
    if options.service:
        service = registration.service(options.service)
        where = {"service": service, "own_namespace": service.namespace}
    made = await registration.register(client, settings, ca_bundle=ca_bundle, **where)
    try:
        yield
    finally:
        if options.unregister_on_exit:
            await registration.unregister(client, made)
