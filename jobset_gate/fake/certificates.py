"""A throw-away CA and a server certificate for 127.0.0.1, for the webhooks of the simulation."""

from __future__ import annotations

import ipaddress
import ssl
import tempfile
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

HOST = "127.0.0.1"
_LIFE = timedelta(days=365)
_SLACK = timedelta(days=1)  # for clocks that disagree


@dataclass(frozen=True, slots=True)
class ServerIdentity:
    """A server's TLS context and the PEM of the CA that signed its certificate."""

    context: ssl.SSLContext
    ca_pem: bytes


def localhost() -> ServerIdentity:
    """Made anew at every call."""
    ca_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    ca = _builder("simulation CA", ca_key.public_key(), issuer="simulation CA")
    ca = ca.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
    ca_certificate = ca.sign(ca_key, hashes.SHA256())
    leaf = _builder(HOST, key.public_key(), issuer="simulation CA")
    address = x509.IPAddress(ipaddress.ip_address(HOST))
    leaf = leaf.add_extension(x509.SubjectAlternativeName([address]), critical=False)
    certificate = leaf.sign(ca_key, hashes.SHA256())
    return ServerIdentity(_context(certificate, key), ca_certificate.public_bytes(serialization.Encoding.PEM))


def _builder(subject: str, key: ec.EllipticCurvePublicKey, *, issuer: str) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(_name(subject))
        .issuer_name(_name(issuer))
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _SLACK)
        .not_valid_after(now + _LIFE)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _context(certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> ssl.SSLContext:
    pem = certificate.public_bytes(serialization.Encoding.PEM) + key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # The ssl module reads files only.
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "server.pem"
        file.touch(mode=0o600)
        file.write_bytes(pem)
        context.load_cert_chain(file)
    return context
