"""Which certificate `webhook` serves, and who looks after it."""

import ssl
from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from jobset_gate.cli.exits import CommandError
from jobset_gate.cli.serve import registration
from jobset_gate.kube.client import Client
from jobset_gate.kube.resources import SECRETS
from webhook.certs import self_signed
from webhook.certs.ca_injector import OF_PODS, CaInjector
from webhook.certs.ca_secret import CaSecretStore
from webhook.certs.controller import CertificateController
from webhook.certs.files import FileSource
from webhook.certs.own_ca import OwnCaSource
from webhook.certs.pem import certificates
from webhook.certs.rollover import Rollover
from webhook.certs.rotation import RotationPolicy
from webhook.certs.sources import CertSource
from webhook.certs.watcher import CertificateWatcher, ServingCertificate
from webhook.metrics import WebhookMetrics


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
