"""The serving certificate, in memory or in files; and a throw-away one for the demo, tests and a first try."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from jobset_gate.runtime.cert_watcher import CertWatcher, ServingContext
from webhook.certs import ca
from webhook.certs.ca import KeyPair, joined

LOOPBACK: Final = ("127.0.0.1", "localhost")


class ServingCertificate(ServingContext):
    """The TLS context that listens, and the pair that it serves."""

    def __init__(self, pair: KeyPair) -> None:
        """Raises ssl.SSLError for a pair that cannot be used."""
        super().__init__(pair.chain, pair.key)

    def load(self, chain: bytes, key: bytes) -> None:
        """Serve this pair to new connections. Raises ssl.SSLError; then the last good pair stays."""
        super().load(chain, key)
        self.pair = KeyPair(chain, key)
        self.chain = self.pair.certificates
        """The leaf first."""

    @property
    def first_to_expire(self) -> x509.Certificate:
        """The certificate of the chain that expires first."""
        return min(self.chain, key=lambda one: one.not_valid_after_utc)


class ServingFiles(CertWatcher):
    """A serving certificate in PEM files, as in a mounted Secret; `reload()` and `run()` take up changes."""

    serving: ServingCertificate

    def __init__(self, certificate: Path, key: Path) -> None:
        """Raises OSError or ssl.SSLError when there is no usable pair to begin with."""
        super().__init__(certificate, key, lambda chain, key: ServingCertificate(KeyPair(chain, key)))


@dataclass(frozen=True, slots=True)
class SelfSigned:
    """A throw-away CA and a certificate that it has signed, in PEM."""

    ca: bytes
    certificate: bytes
    key: bytes

    @property
    def ca_bundle(self) -> str:
        """The CA as a webhook configuration's caBundle."""
        return b64encode(self.ca).decode()

    @property
    def pair(self) -> KeyPair:
        """What a server needs of it."""
        return KeyPair(self.certificate, self.key)

    @property
    def serving(self) -> ServingCertificate:
        """The pair, ready to be served from memory."""
        return ServingCertificate(self.pair)

    def write(self, folder: Path) -> ServingFiles:
        """Write tls.crt, tls.key (readable by the owner only) and ca.crt into a folder and load them."""
        certificate, key = folder / "tls.crt", folder / "tls.key"
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        certificate.write_bytes(self.certificate)
        (folder / "ca.crt").write_bytes(self.ca)
        return ServingFiles(certificate, key)


def self_signed(hosts: Sequence[str] = LOOPBACK, *, days: float = 7, now: datetime | None = None) -> SelfSigned:
    """A new CA and a certificate for these host names and IP addresses."""
    moment, life = now or datetime.now(UTC), timedelta(days=days)
    authority = ca.create("jobset-gate throw-away CA", now=moment, life=life)
    pair = authority.issue(hosts, now=moment, life=life)
    return SelfSigned(joined([authority.certificate]), pair.chain, pair.key)
