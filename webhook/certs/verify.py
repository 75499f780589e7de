"""Whether an API server would trust a certificate: a TLS handshake in memory against a caBundle."""

import ssl
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from cryptography import x509

from webhook.certs.ca import certificates, is_signed_by, is_valid, joined

_NO_CHECK_TIME: Final = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: time is an argument here, so dates are checked by us."""
_TURNS: Final = 4
"""More round trips than a handshake takes."""


def untrusted_reason(
    served: ssl.SSLContext, chain: Sequence[x509.Certificate], bundles: Mapping[str, bytes], host: str, now: datetime
) -> str | None:
    """Why an API server would not connect to `served` under the name `host`; None: it would.

    `chain` is what `served` presents; `bundles` the caBundle of each webhook configuration by the configuration's name.
    """
    for one in chain:
        if not is_valid(one, now):
            return f"the serving certificate is valid from {_dates(one)} only"
    for name, text in bundles.items():
        refusal = _refusal(served, text, host, now)
        if refusal:
            return f"{name}: {refusal}"
    return None


def issuer(chain: Sequence[x509.Certificate], bundles: Mapping[str, bytes]) -> x509.Certificate | None:
    """The CA of the chain, if it is in one of the bundles."""
    cas = [ca for text in bundles.values() for ca in certificates(text)]
    return next((ca for ca in cas if any(is_signed_by(one, ca) for one in chain)), None)


def _refusal(served: ssl.SSLContext, bundle: bytes, host: str, now: datetime) -> str | None:
    if not bundle.strip():
        return "has no caBundle"
    valid = [ca for ca in certificates(bundle) if is_valid(ca, now)]
    if not valid:
        return "its caBundle holds no certificate that is valid now"
    try:
        _handshake(served, _client(joined(valid)), host)
    except ssl.SSLCertVerificationError as refused:
        return f"its caBundle does not verify the serving certificate for {host}: {refused.verify_message}"
    return None


def _client(cas: bytes) -> ssl.SSLContext:
    """Verifies as an API server does: each certificate of the bundle is an anchor, common names do not count."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.hostname_checks_common_name = False
    context.verify_flags |= ssl.VerifyFlags.VERIFY_X509_PARTIAL_CHAIN | ssl.VerifyFlags(_NO_CHECK_TIME)
    context.load_verify_locations(cadata=cas.decode())
    return context


def _handshake(served: ssl.SSLContext, client: ssl.SSLContext, host: str) -> None:
    there, back = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(back, there, server_hostname=host)
    answering = served.wrap_bio(there, back, server_side=True)
    for _ in range(_TURNS):
        if _advanced(asking) & _advanced(answering):
            return
    raise ssl.SSLError("the handshake did not end")


def _advanced(end: ssl.SSLObject) -> bool:
    """Has this end finished?"""
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _dates(one: x509.Certificate) -> str:
    return f"{one.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ} to {one.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
