"""An installation whose certificates are kept: configurations, a Service, and as many replicas as a test starts."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from jobset_gate.kube.client import Client, PatchType
from jobset_gate.kube.errors import NotFound
from jobset_gate.kube.resources import MUTATING_WEBHOOKS, SECRETS, VALIDATING_WEBHOOKS, Resource
from jobset_gate.runtime.cert_watcher import CertWatcher
from tests.fakes.admission_server import WEBHOOK_TIMEOUT, limited
from webhook import registration
from webhook.certs.ca_injector import CaInjector
from webhook.certs.controller import CertificateController
from webhook.certs.rotation import RotationPolicy
from webhook.certs.serving import Rollover, SelfSigned, ServingCertificate, self_signed, untrusted_reason
from webhook.certs.sources import CaSecretStore, CertSource, OwnCaSource
from webhook.metrics import WebhookMetrics

SECRET = "jobset-gate-ca"
SERVICE = "jobset-gate-webhook"
Json = dict[str, Any]


def write_files(made: SelfSigned, folder: Path) -> CertWatcher[ServingCertificate]:
    """tls.crt, tls.key and ca.crt in a folder, as a mounted Secret has them, and loaded."""
    for name, text in (("tls.key", made.key), ("tls.crt", made.certificate), ("ca.crt", made.ca)):
        (folder / name).write_bytes(text)
    return CertWatcher(folder / "tls.crt", folder / "tls.key", ServingCertificate)


class VirtualDatetime:
    """Virtual time; it stands still unless a test moves it."""

    def __init__(self, at: datetime | None = None) -> None:
        self.at = at or datetime.now(UTC)

    def __call__(self) -> datetime:
        return self.at

    def forward(self, by: timedelta) -> None:
        self.at += by


@dataclass
class WebhookReplica:
    """One webhook with its certificate controller."""

    slot: ServingCertificate
    certificates: CertificateController
    metrics: WebhookMetrics
    rollover: Rollover

    async def reconcile(self) -> str | None:
        """Look once; why it is not ready."""
        await self.certificates.reconcile()
        return self.certificates.not_ready_reason()

    def number(self, name: str, **labels: str) -> float | None:
        return self.metrics.registry.get_sample_value(name, labels)


@dataclass
class CertificateInstallation:
    """The cluster-wide part and its Secret. `which`: resource and name of the two configurations for JobSets."""

    client: Client
    namespace: str
    which: tuple[tuple[Resource, str], ...]
    now: VirtualDatetime = field(default_factory=VirtualDatetime)
    terms: RotationPolicy = field(default_factory=RotationPolicy)
    optional: tuple[tuple[Resource, str], ...] = ()
    """Of the configuration for pods, if groups are enabled."""

    @property
    def host(self) -> str:
        return f"{SERVICE}.{self.namespace}.svc"

    def replica(
        self, client: Client | None = None, source: CertSource | None = None, slot: ServingCertificate | None = None
    ) -> WebhookReplica:
        """Not yet started; own CA unless another source is given."""
        using, metrics = client or self.client, WebhookMetrics()
        held = slot or self_signed(["placeholder"]).serving
        rollover = Rollover(held, self.host, self.terms.settling, provisional=slot is None)
        changed = metrics.certificate_changes
        own = source or OwnCaSource(
            CaSecretStore(using, self.namespace, SECRET),
            [self.host],
            self.terms,
            self.now,
            lambda it: changed.labels(it).inc(),
        )
        controller = CertificateController(
            using,
            CaInjector(using, self.which, self.optional),
            own,
            rollover,
            metrics=metrics,
            now=self.now,
            interval=0.2,
            extra_watches=[(SECRETS, self.namespace, SECRET)],
        )
        return WebhookReplica(held, controller, metrics, rollover)

    # --- What there is -----------------------------------------------------------------------------------------------

    async def bundles(self) -> dict[str, bytes]:
        return dict((await CaInjector(self.client, self.which, self.optional).read()).bundles)

    async def secret(self) -> Json | None:
        try:
            return await self.client.get(SECRETS, SECRET, self.namespace)
        except NotFound:
            return None

    async def trusts(self, replica: WebhookReplica) -> bool:
        """Whether an API server that has read the configurations would talk to the replica at this moment."""
        bundles = await self.bundles()
        return untrusted_reason(replica.slot.context, replica.slot.chain, bundles, self.host, self.now()) is None

    # --- What others do to it ----------------------------------------------------------------------------------------

    async def put_bundle(self, text: str | None) -> None:
        """Another client writes caBundle; None wipes it."""
        for resource, name in self.which:
            body = [{"op": "add", "path": "/webhooks/0/clientConfig/caBundle", "value": text}]
            if text is None:
                body = [{"op": "remove", "path": "/webhooks/0/clientConfig/caBundle"}]
            await self.client.patch(resource, name, body=body, patch=PatchType.JSON)


@asynccontextmanager
async def installation(
    client: Client, namespace: str, *, port: int = 443, terms: RotationPolicy | None = None
) -> AsyncIterator[CertificateInstallation]:
    """The configurations as the chart writes them, for the JobSets of one namespace; gone at the end."""
    resources = (MUTATING_WEBHOOKS, VALIDATING_WEBHOOKS)
    service = registration.ServiceReference(namespace, SERVICE, port)
    made = registration.configurations(service=service, suffix=f"-{namespace}", timeout_seconds=WEBHOOK_TIMEOUT)
    names_made = []
    try:
        for resource, configuration in zip(resources, made, strict=True):
            name, body = configuration["metadata"]["name"], limited(configuration, namespace)
            await client.patch(resource, name, body=body, patch=PatchType.APPLY, field_manager="helm", force=True)
            names_made.append((resource, name))
        yield CertificateInstallation(client, namespace, tuple(names_made), terms=terms or RotationPolicy())
    finally:
        for resource, name in names_made:
            await client.delete(resource, name)
