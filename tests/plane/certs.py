"""The certificates and keys of one control plane: made for each, thrown away with it."""

import datetime
import ipaddress
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_VALID_FOR = datetime.timedelta(days=2)
_CLOCKS_DIFFER_BY = datetime.timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class CertFiles:
    """A certificate and its key as PEM files."""

    cert: Path
    key: Path


@dataclass(frozen=True, slots=True)
class Certificates:
    """One CA; the API server's certificate; an admin's (group system:masters); the key of service accounts."""

    ca: Path
    server: CertFiles
    admin: CertFiles
    service_accounts: Path


def make(folder: Path) -> Certificates:
    """Write all of them into `folder`."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    ca_key = ec.generate_private_key(ec.SECP256R1())
    ca = _signed(
        _name("control plane of a test"), ca_key, None, ca_key, [x509.BasicConstraints(ca=True, path_length=0)]
    )
    (folder / "ca.crt").write_bytes(_pem(ca))
    addresses = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address("127.0.0.1"))]
    server = _leaf(
        folder / "server", _name("kube-apiserver"), ca, ca_key,
        [x509.SubjectAlternativeName(addresses), x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH])],
    )  # fmt: skip
    admin = _leaf(
        folder / "admin", _name("admin", group="system:masters"), ca, ca_key,
        [x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH])],
    )  # fmt: skip
    service_accounts = folder / "service-accounts.key"
    _write_key(service_accounts, rsa.generate_private_key(public_exponent=65537, key_size=2048))
    return Certificates(folder / "ca.crt", server, admin, service_accounts)


def _leaf(
    stem: Path,
    subject: x509.Name,
    ca: x509.Certificate,
    ca_key: ec.EllipticCurvePrivateKey,
    extensions: list[x509.ExtensionType],
) -> CertFiles:
    key = ec.generate_private_key(ec.SECP256R1())
    pair = CertFiles(stem.with_suffix(".crt"), stem.with_suffix(".key"))
    pair.cert.write_bytes(_pem(_signed(subject, key, ca, ca_key, extensions)))
    _write_key(pair.key, key)
    return pair


def _signed(
    subject: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    ca: x509.Certificate | None,
    ca_key: ec.EllipticCurvePrivateKey,
    extensions: list[x509.ExtensionType],
) -> x509.Certificate:
    """`ca` None: self-signed. Key identifiers are there because Python 3.13 demands them."""
    now = datetime.datetime.now(datetime.UTC)
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(ca.subject if ca else subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _CLOCKS_DIFFER_BY)
        .not_valid_after(now + _VALID_FOR)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(ca_key.public_key()), critical=False)
    )
    for extension in extensions:
        builder = builder.add_extension(extension, critical=isinstance(extension, x509.BasicConstraints))
    if ca is None:
        builder = builder.add_extension(_MAY_SIGN, critical=True)
    return builder.sign(ca_key, hashes.SHA256())


_MAY_SIGN = x509.KeyUsage(
    digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False, key_encipherment=False,
    data_encipherment=False, key_agreement=False, encipher_only=False, decipher_only=False,
)  # fmt: skip


def _name(common: str, group: str | None = None) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.COMMON_NAME, common)]
    if group:
        parts.insert(0, x509.NameAttribute(NameOID.ORGANIZATION_NAME, group))
    return x509.Name(parts)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> None:
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
    path.chmod(0o600)
