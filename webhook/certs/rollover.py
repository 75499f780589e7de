"""Rollover of the serving certificate: a new one is served only when the API servers trust it."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from cryptography import x509

from webhook.certs import verify
from webhook.certs.ca import KeyPair, fingerprint, is_valid
from webhook.certs.rotation import FirstSeen
from webhook.certs.serving import ServingCertificate

Bundles = Mapping[str, bytes]


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
        return verify.untrusted_reason(self.slot.context, self.slot.chain, bundles, self.host, now)

    def _may_roll_over(self, pair: KeyPair, bundles: Bundles, now: datetime) -> bool:
        new = pair.certificates
        trusted = verify.untrusted_reason(ServingCertificate(pair).context, new, bundles, self.host, now) is None
        self._trusted.observe([fingerprint(new[0])] if trusted else [], now)
        if self._provisional:
            return True
        if self.untrusted_reason(bundles, now) is not None:
            return trusted or not is_valid(self.slot.chain[0], now)
        # Both are trusted according to the configurations, which some API servers may not have read yet.
        settled = bool(self._trusted.seen_for(self._settling, now))
        return trusted and (settled or self._same_issuer(new, bundles))

    def _same_issuer(self, new: tuple[x509.Certificate, ...], bundles: Bundles) -> bool:
        theirs, ours = verify.issuer(new, bundles), verify.issuer(self.slot.chain, bundles)
        return theirs is not None and theirs == ours
