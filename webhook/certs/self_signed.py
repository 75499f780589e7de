"""A throw-away certificate authority with one serving certificate, for the demo, for tests and for a first try."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from webhook.certs import ca as authority
from webhook.certs.ca import KeyPair, joined
from webhook.certs.watcher import CertificateWatcher

LOOPBACK: Final = ("127.0.0.1", "localhost")


@dataclass(frozen=True, slots=True)
class SelfSigned:
    """Three PEM texts."""

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

    def write(self, folder: Path) -> CertificateWatcher:
        """Put tls.crt, tls.key (readable by the owner only) and ca.crt into a folder and load them."""
        certificate, key = folder / "tls.crt", folder / "tls.key"
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        certificate.write_bytes(self.certificate)
        (folder / "ca.crt").write_bytes(self.ca)
        return CertificateWatcher(certificate, key)


def make(hosts: Sequence[str] = LOOPBACK, *, days: float = 7, now: datetime | None = None) -> SelfSigned:
    """A new CA and a certificate for these host names and IP addresses."""
    moment, life = now or datetime.now(UTC), timedelta(days=days)
    ca = authority.create("jobset-gate throw-away CA", now=moment, life=life)
    pair = ca.issue(hosts, now=moment, life=life)
    return SelfSigned(joined([ca.certificate]), pair.chain, pair.key)
