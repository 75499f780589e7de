"""X.509: PEM text, a certificate authority, and the serving certificates that it signs. Pure; time is an argument."""

import re
from base64 import b64decode
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from typing import Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate chain, the leaf first, and the key of the leaf; both PEM."""

    chain: bytes
    key: bytes

    @property
    def certificates(self) -> tuple[x509.Certificate, ...]:
        """The leaf first."""
        return certificates(self.chain)


def certificates(text: bytes) -> tuple[x509.Certificate, ...]:
    """All certificates in a PEM text, in order. Unreadable ones are left out, as API servers do."""
    found = []
    for block in _CERTIFICATE.findall(text):
        try:
            found.append(x509.load_pem_x509_certificate(block))
        except ValueError:
            continue
    return tuple(found)


def decoded(text: str | None) -> bytes:
    """What a Secret or a caBundle has in base64; nothing for a text that is no base64."""
    try:
        return b64decode(text or "", validate=True)
    except ValueError:
        return b""


def keys(text: bytes) -> tuple[bytes, ...]:
    """The private keys in a text, each as PEM."""
    return tuple(found.group(0) for found in _KEY.finditer(text))


def joined(certificates: Iterable[x509.Certificate]) -> bytes:
    """The certificates as one PEM text."""
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 in hexadecimal."""
    return certificate.fingerprint(hashes.SHA256()).hex()


BACKDATED: Final = timedelta(minutes=5)
"""Clock skew. A life of less than ten times as long is backdated by a tenth of it."""


@dataclass(frozen=True, slots=True)
class CertificateAuthority:
    """A CA that can sign."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    def key_pem(self) -> bytes:
        """The key in PEM, not encrypted."""
        return _key_text(self.key)

    def issue(self, hosts: Sequence[str], *, now: datetime, life: timedelta) -> KeyPair:
        """A new key and a serving certificate for these host names and addresses; it never outlives the CA."""
        key, ca = ec.generate_private_key(ec.SECP256R1()), self.certificate
        builder = _builder(_name(hosts[0]), ca.subject, key, now, min(life, ca.not_valid_after_utc - now))
        extensions = (
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]),
            x509.SubjectAlternativeName([_host(it) for it in hosts]),
            x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key()),
        )
        for extension in extensions:
            builder = builder.add_extension(extension, critical=False)
        leaf = builder.sign(self.key, hashes.SHA256())
        return KeyPair(leaf.public_bytes(serialization.Encoding.PEM), _key_text(key))


def create(name: str, *, now: datetime, life: timedelta) -> CertificateAuthority:
    """A new CA. `name` should be unique: clients look for an issuer by its name."""
    key = ec.generate_private_key(ec.SECP256R1())
    builder = _builder(_name(name), _name(name), key, now, life)
    identifier = x509.SubjectKeyIdentifier.from_public_key(key.public_key())
    return CertificateAuthority(builder.add_extension(identifier, critical=False).sign(key, hashes.SHA256()), key)


def load(certificate: x509.Certificate, key: bytes) -> CertificateAuthority | None:
    """The CA of a certificate and a key in PEM; None if they do not belong together, or cannot sign for us."""
    try:
        loaded = serialization.load_pem_private_key(key, password=None)
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints).value
        public = certificate.public_key()
    except (ValueError, TypeError, UnsupportedAlgorithm, x509.ExtensionNotFound):
        return None
    if not isinstance(loaded, ec.EllipticCurvePrivateKey) or not constraints.ca or loaded.public_key() != public:
        return None
    return CertificateAuthority(certificate, loaded)


def is_valid(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether `now` is between its dates."""
    return certificate.not_valid_before_utc <= now <= certificate.not_valid_after_utc


def has_expired(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether its last date has passed. One that is not valid yet was created where the clock is ahead."""
    return now > certificate.not_valid_after_utc


def is_due(certificate: x509.Certificate, now: datetime) -> bool:
    """Whether two thirds of its life are over: it should be renewed."""
    begun, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    return now >= begun + (ends - begun) * 2 / 3


def is_signed_by(leaf: x509.Certificate, by: x509.Certificate) -> bool:
    try:
        leaf.verify_directly_issued_by(by)
    except Exception:  # noqa: BLE001 - it raises many things for one reason: no
        return False
    return True


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, life: timedelta
) -> x509.CertificateBuilder:
    """Of a CA if it is its own issuer."""
    is_ca = subject == issuer
    others = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
    never = dict.fromkeys((*others, "encipher_only", "decipher_only"), False)
    usage = x509.KeyUsage(digital_signature=True, key_cert_sign=is_ca, crl_sign=is_ca, **never)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - min(BACKDATED, life / 10))
        .not_valid_after(now + life)
        .add_extension(x509.BasicConstraints(ca=is_ca, path_length=0 if is_ca else None), critical=True)
        .add_extension(usage, critical=True)
    )


def _key_text(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text[:64])])


def _host(text: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(text))
    except ValueError:
        return x509.DNSName(text)
