"""A throw-away certificate authority with one serving certificate, for the demo and for tests."""

from base64 import b64encode
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.tls import Certificate

LOOPBACK: Final = ("127.0.0.1", "localhost")
_BACKDATED: Final = timedelta(minutes=5)
"""Clocks differ."""


@dataclass(frozen=True, slots=True)
class Bundle:
    """Three PEM texts."""

    ca: bytes
    certificate: bytes
    key: bytes

    @property
    def ca_bundle(self) -> str:
        """The CA as a webhook configuration's caBundle."""
        return b64encode(self.ca).decode()

    def write(self, folder: Path) -> Certificate:
        """Put tls.crt, tls.key (readable by the owner only) and ca.crt into a folder and load them."""
        certificate, key = folder / "tls.crt", folder / "tls.key"
        key.touch(mode=0o600)
        key.write_bytes(self.key)
        certificate.write_bytes(self.certificate)
        (folder / "ca.crt").write_bytes(self.ca)
        return Certificate(certificate, key)


def make(hosts: Sequence[str] = LOOPBACK, *, days: int = 7, now: datetime | None = None) -> Bundle:
    """A new CA and a certificate for these host names and IP addresses."""
    moment = now or datetime.now(UTC)
    ca_key, key = ec.generate_private_key(ec.SECP256R1()), ec.generate_private_key(ec.SECP256R1())
    ca_name = _name("jobset-gate throw-away CA")
    ca = (
        _builder(ca_name, ca_name, ca_key.public_key(), moment, days)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(signs_certificates=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    leaf = (
        _builder(_name(hosts[0]), ca_name, key.public_key(), moment, days)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_host(it) for it in hosts]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
        .sign(ca_key, hashes.SHA256())
    )
    pem = serialization.Encoding.PEM
    key_pem = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    return Bundle(ca.public_bytes(pem), leaf.public_bytes(pem), key_pem)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, moment: datetime, days: int
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(moment - _BACKDATED)
        .not_valid_after(moment + timedelta(days=days))
    )


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
