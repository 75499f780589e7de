"""The certificates and keys of one control plane: made for each, thrown away with it."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from webhook.certs import ca as authority
from webhook.certs.ca import CertificateAuthority, joined

_VALID_FOR = timedelta(days=2)


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
    ca = authority.create("control plane of a test", now=datetime.now(UTC), life=_VALID_FOR)
    (folder / "ca.crt").write_bytes(joined([ca.certificate]))
    pair = ca.issue(["localhost", "127.0.0.1"], now=datetime.now(UTC), life=_VALID_FOR)
    server, admin = (CertFiles(folder / f"{name}.crt", folder / f"{name}.key") for name in ("server", "admin"))
    server.cert.write_bytes(pair.chain)
    server.key.write_bytes(pair.key)
    key = ec.generate_private_key(ec.SECP256R1())
    admin.cert.write_bytes(joined([_admin(ca, key.public_key())]))
    admin.key.write_bytes(_pem(key))
    (folder / "service-accounts.key").write_bytes(_pem(rsa.generate_private_key(public_exponent=65537, key_size=2048)))
    return Certificates(folder / "ca.crt", server, admin, folder / "service-accounts.key")


def _admin(ca: CertificateAuthority, key: ec.EllipticCurvePublicKey) -> x509.Certificate:
    group = x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")
    return (
        x509.CertificateBuilder()
        .subject_name(x509.Name([group, x509.NameAttribute(NameOID.COMMON_NAME, "admin")]))
        .issuer_name(ca.certificate.subject)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(ca.certificate.not_valid_before_utc)
        .not_valid_after(ca.certificate.not_valid_after_utc)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False)
        .sign(ca.key, hashes.SHA256())
    )


def _pem(key: ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
    )
