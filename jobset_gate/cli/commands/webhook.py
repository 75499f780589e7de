"""`webhook`: the admission webhook, served by this process."""

import asyncio
import ssl
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Annotated

import typer

from jobset_gate.cli import logs, settings_file
from jobset_gate.cli.cluster import ClusterOptions
from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.logs import log_signal
from jobset_gate.cli.options import Config, LogOptions, new_app, option
from jobset_gate.cli.options import port as port_option
from jobset_gate.cli.runner import run_service
from jobset_gate.cli.serve import process, registration
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import SECRETS
from jobset_gate.runtime.cert_watcher import CertWatcher
from jobset_gate.settings import Settings
from webhook.certs.ca import certificates
from webhook.certs.ca_injector import OF_BARRIER_PODS, OF_PODS, CaInjector
from webhook.certs.controller import CertificateController
from webhook.certs.rotation import RotationPolicy
from webhook.certs.serving import LOOPBACK, Rollover, ServingCertificate, self_signed
from webhook.certs.sources import CaSecretStore, FileSource, OwnCaSource
from webhook.metrics import WebhookMetrics
from webhook.server import serve


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookOptions:
    """What the command line asks for."""

    host: Annotated[str, option("--host", "ADDRESS", "The address to listen on.")] = "127.0.0.1"
    port: Annotated[int, port_option("--port", "The port; 0 takes a free one.")] = 9443
    tls_cert: Annotated[
        Path | None, option("--tls-cert", "FILE", "The certificate (PEM); read again when it changes.")
    ] = None
    tls_key: Annotated[Path | None, option("--tls-key", "FILE", "Its key (PEM).")] = None
    tls_ca: Annotated[
        Path | None, option("--tls-ca", "FILE", "With --publish-ca: the CA that the API server shall trust.")
    ] = None
    self_signed: Annotated[
        bool, typer.Option("--self-signed", help="Serve a throw-away certificate, made at each start.")
    ] = False
    own_ca: Annotated[
        str | None,
        option(
            "--own-ca",
            "SECRET",
            "Keep a CA in this Secret of the Service's namespace, sign a certificate in memory, and keep the"
            " caBundle of the webhook configurations.",
        ),
    ] = None
    ca_days: Annotated[
        float, option("--ca-days", "DAYS", "With --own-ca: how long a CA lives.", min=0.05, max=36500)
    ] = 365.0
    leaf_hours: Annotated[
        float, option("--leaf-hours", "HOURS", "With --own-ca: how long a certificate lives.", min=0.1, max=87600)
    ] = 168.0
    publish_ca: Annotated[
        bool,
        typer.Option("--publish-ca", help="Keep what --tls-ca holds in the caBundle of the webhook configurations."),
    ] = False
    check_trust: Annotated[
        bool,
        typer.Option(
            "--check-trust",
            help="Be ready only while the caBundle of the webhook configurations verifies the certificate for the"
            " Service. --own-ca and --publish-ca do so anyway.",
        ),
    ] = False
    register: Annotated[
        bool,
        typer.Option(
            "--register",
            help="With --self-signed: create or update the cluster's webhook configurations, with the address where"
            " this process listens.",
        ),
    ] = False
    service: Annotated[
        str | None,
        option("--service", "NAMESPACE/NAME[:PORT]", "The Service in front of it, for whose name certificates are."),
    ] = None
    unregister_on_exit: Annotated[
        bool, typer.Option("--unregister-on-exit", help="With --register: delete the configurations at the end.")
    ] = False
    shutdown_delay: Annotated[
        float, option("--shutdown-delay", "SECONDS", "Seconds to go on answering, not ready, before closing.", min=0)
    ] = 0.0

    def check(self) -> None:
        """Raises BadParameter for options that do not fit together."""
        files = self.tls_cert is not None or self.tls_key is not None
        kept = self.manages_trust
        rules: tuple[tuple[object, str], ...] = (
            (
                self.self_signed + (self.own_ca is not None) + files != 1,
                "give one of --self-signed, --own-ca, or both --tls-cert and --tls-key",
            ),
            (files and (self.tls_cert is None or self.tls_key is None), "--tls-cert and --tls-key belong together"),
            (self.publish_ca and not (files and self.tls_ca), "--publish-ca needs --tls-ca and --tls-cert"),
            (self.check_trust and self.self_signed, "--check-trust needs --tls-cert"),
            (kept and not self.service, "--own-ca, --publish-ca and --check-trust need --service"),
            (
                self.own_ca is not None and self.leaf_hours > self.ca_days * 24 / 3,
                "--leaf-hours: a CA must live at least three times as long as a certificate",
            ),
            (self.tls_ca and not self.publish_ca, "--tls-ca needs --publish-ca"),
            (self.service and not kept, "--service needs --own-ca, --publish-ca or --check-trust"),
            (self.unregister_on_exit and not self.register, "--unregister-on-exit needs --register"),
            (
                self.register and not (self.self_signed and self.addresses),
                "--register needs --self-signed, and a --host that API servers reach",
            ),
        )
        for holds, text in rules:
            if holds:
                raise typer.BadParameter(text)

    @property
    def manages_trust(self) -> bool:
        """Whether we see to the API servers' trust in the certificate."""
        return self.own_ca is not None or self.publish_ca or self.check_trust

    @property
    def addresses(self) -> list[str]:
        """The one address where it listens; none where it listens on all."""
        return [] if self.host in ("", "0.0.0.0", "::") else [self.host]  # noqa: S104 - to leave it out

    @property
    def service_hosts(self) -> list[str]:
        """The names of the Service, if there is one; the one that API servers use first."""
        if not self.service:
            return []
        its = registration.service(self.service)
        return [f"{its.name}.{its.namespace}.svc", f"{its.name}.{its.namespace}.svc.cluster.local"]


def _serving(options: WebhookOptions) -> tuple[ServingCertificate, CertWatcher[ServingCertificate] | None, str | None]:
    """What is served at the start, the files that it is read from again, and the caBundle to register.

    No caBundle: it is managed elsewhere.
    """
    if options.tls_cert is None or options.tls_key is None:
        made = self_signed(list(dict.fromkeys([*options.addresses, *options.service_hosts, *LOOPBACK])), days=365)
        return made.serving, None, made.ca_bundle
    try:
        files = CertWatcher(options.tls_cert, options.tls_key, ServingCertificate)
    except ssl.SSLError as problem:
        reason = f"no certificate with its key: {getattr(problem, 'reason', None) or problem}"
        raise CommandError(f"{options.tls_cert}, {options.tls_key}: {reason}") from problem
    if options.tls_ca is not None and not certificates(options.tls_ca.read_bytes()):
        raise CommandError(f"{options.tls_ca}: no certificate in it")
    return files.serving, files, None


def _certificate_controller(
    client: Client, serving: ServingCertificate, metrics: WebhookMetrics, options: WebhookOptions, settings: Settings
) -> CertificateController | None:
    """Manages the certificate for the Service's name. The configurations for pods are optional, by the settings."""
    if not options.service:
        return None
    of_pods = (*(OF_PODS if settings.groups.enabled else ()), *(OF_BARRIER_PODS if settings.gangs.gates_pods else ()))
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
            made = await registration.register(client, settings, ca_bundle=ca_bundle, url=server.url)
            if options.unregister_on_exit:
                stack.push_async_callback(registration.unregister, client, made)
            registered.set()
        # With a controller, new files are served only when they are trusted; else at once.
        if controller is not None:
            await controller.run()
        elif files is not None:
            await files.run(on_reload=lambda ok: metrics.certificate_reloads.labels("ok" if ok else "failed").inc())
        else:
            await asyncio.Event().wait()


app = new_app()


@app.command("webhook", epilog="Example: {program} webhook --self-signed --register --unregister-on-exit")
def webhook(*, options: WebhookOptions, config: Config = None, cluster: ClusterOptions, log: LogOptions) -> None:
    """Serve the admission webhook over HTTPS until SIGTERM or SIGINT.

    Answers at /mutate, /validate and /mutate-pods, and at /healthz, /readyz and /metrics.
    """
    options.check()
    logs.configure(log.log_format, log.log_level)
    asyncio.run(run(settings_file.read(config).admission, options, cluster))
