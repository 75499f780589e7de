"""PEM texts and what is in them: certificates, keys, and a certificate chain with its key."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization

_CERTIFICATE: Final = re.compile(rb"-----BEGIN CERTIFICATE-----.*?-----END CERTIFICATE-----", re.DOTALL)
_KEY: Final = re.compile(rb"-----BEGIN ([A-Z ]*)PRIVATE KEY-----.*?-----END \1PRIVATE KEY-----", re.DOTALL)


@dataclass(frozen=True, slots=True)
class KeyPair:
    """What a server needs: its certificate, then those between it and the CA, and the key of the first."""

    chain: bytes
    key: bytes

    @property
    def certificates(self) -> tuple[x509.Certificate, ...]:
        """The leaf first."""
        return certificates(self.chain)


def certificates(text: bytes) -> tuple[x509.Certificate, ...]:
    """All certificates in a text, in order. What cannot be read is left out, as API servers do."""
    found = []
    for block in _CERTIFICATE.findall(text):
        try:
            found.append(x509.load_pem_x509_certificate(block))
        except ValueError:
            continue
    return tuple(found)


def keys(text: bytes) -> tuple[bytes, ...]:
    """The private keys in a text, each as the PEM text it is."""
    return tuple(found.group(0) for found in _KEY.finditer(text))


def joined(certificates: Iterable[x509.Certificate]) -> bytes:
    """The certificates as one text."""
    return b"".join(one.public_bytes(serialization.Encoding.PEM) for one in certificates)


def fingerprint(certificate: x509.Certificate) -> str:
    """SHA-256 in hexadecimal: what people compare."""
    return certificate.fingerprint(hashes.SHA256()).hex()
