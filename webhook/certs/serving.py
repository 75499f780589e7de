"""The serving certificate, in memory or in files, and whether an API server would trust it; and a throw-away one.

Trust is tried by a TLS handshake in memory; only what is trusted takes the place of what is served.
"""

import ssl
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509

from jobset_gate.runtime.cert_watcher import ServingContext
from webhook.certs import ca
from webhook.certs.ca import KeyPair, certificates, fingerprint, is_signed_by, is_valid, joined
from webhook.certs.rotation import FirstSeen

LOOPBACK: Final = ("127.0.0.1", "localhost")
Bundles = Mapping[str, bytes]
"""The caBundle of each webhook configuration by the configuration's name."""
_NO_CHECK_TIME: Final = 0x200000
"""OpenSSL's X509_V_FLAG_NO_CHECK_TIME: time is an argument here, so dates are checked by us."""
_TURNS: Final = 4
"""More round trips than a handshake takes."""


class ServingCertificate(ServingContext):
    """The TLS context that listens, and the pair that it serves."""

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


class Rollover:
    """Guards one serving certificate. `provisional`: it was generated only to be able to listen."""

    def __init__(self, slot: ServingCertificate, host: str, settling: timedelta, *, provisional: bool = False) -> None:
        self.slot, self.host = slot, host
        self._settling, self._provisional = settling, provisional
        self._trusted = FirstSeen()

    def roll_over(self, pair: KeyPair, bundles: Bundles, now: datetime) -> bool:
        """Serve `pair` if the API servers trust it; whether it was taken. Raises ssl.SSLError for an unusable pair."""
        if pair == self.slot.pair or not self._may_roll_over(pair, bundles, now):
            return False
        self.slot.load(pair.chain, pair.key)
        self._provisional = False
        return True

    def untrusted_reason(self, bundles: Bundles, now: datetime) -> str | None:
        """Why API servers with these caBundles do not trust the serving certificate; None if they do."""
        if self._provisional:
            return "there is no certificate yet"
        return untrusted_reason(self.slot.context, self.slot.chain, bundles, self.host, now)

    def _may_roll_over(self, pair: KeyPair, bundles: Bundles, now: datetime) -> bool:
        new = pair.certificates
        tried = ServingCertificate(pair.chain, pair.key).context
        trusted = untrusted_reason(tried, new, bundles, self.host, now) is None
        self._trusted.observe([fingerprint(new[0])] if trusted else [], now)
        if self._provisional:
            return True
        if self.untrusted_reason(bundles, now) is not None:
            return trusted or not is_valid(self.slot.chain[0], now)
        # Both are trusted according to the configurations, which some API servers may not have read yet.
        settled = bool(self._trusted.seen_for(self._settling, now))
        theirs = issuer(new, bundles)
        return trusted and (settled or (theirs is not None and theirs == issuer(self.slot.chain, bundles)))


def untrusted_reason(
    served: ssl.SSLContext, chain: Sequence[x509.Certificate], bundles: Bundles, host: str, now: datetime
) -> str | None:
    """Why an API server would not connect to `served` under the name `host`; None: it would.

    `chain` is what `served` presents.
    """
    for one in chain:
        if not is_valid(one, now):
            dates = f"{one.not_valid_before_utc:%Y-%m-%dT%H:%M:%SZ} to {one.not_valid_after_utc:%Y-%m-%dT%H:%M:%SZ}"
            return f"the serving certificate is valid from {dates} only"
    for name, text in bundles.items():
        refusal = _refusal(served, text, host, now)
        if refusal:
            return f"{name}: {refusal}"
    return None


def issuer(chain: Sequence[x509.Certificate], bundles: Bundles) -> x509.Certificate | None:
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
    try:
        end.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


# --- A throw-away certificate, for the demo, tests and a first try ---------------------------------------------------


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
    def serving(self) -> ServingCertificate:
        """The pair, ready to be served from memory."""
        return ServingCertificate(self.certificate, self.key)


def self_signed(hosts: Sequence[str] = LOOPBACK, *, days: float = 7) -> SelfSigned:
    """A new CA and a certificate for these host names and IP addresses."""
    now, life = datetime.now(UTC), timedelta(days=days)
    authority = ca.create("jobset-gate throw-away CA", now=now, life=life)
    pair = authority.issue(hosts, now=now, life=life)
    return SelfSigned(joined([authority.certificate]), pair.chain, pair.key)
