"""When a new certificate takes the place of the one that is served: not before the API servers trust it."""

from collections.abc import Mapping
from datetime import datetime, timedelta

from cryptography import x509

from webhook.certs import verify, watcher
from webhook.certs.ca import KeyPair, fingerprint, is_valid
from webhook.certs.rotation import FirstSeen
from webhook.certs.watcher import ServingCertificate

Bundles = Mapping[str, bytes]


class Rollover:
    """Guards one slot. `provisional`: what it holds now was only put there to have something to answer with."""

    def __init__(self, slot: ServingCertificate, host: str, settling: timedelta, *, provisional: bool = False) -> None:
        self.slot, self.host = slot, host
        self._settling, self._provisional = settling, provisional
        self._trusted = FirstSeen()

    def roll_over(self, pair: KeyPair, bundles: Bundles, now: datetime) -> bool:
        """Serve `pair` from now on, if it is time for that. Raises ssl.SSLError for a pair that cannot be used."""
        if pair == self.slot.pair or not self._may_roll_over(pair, bundles, now):
            return False
        self.slot.swap(pair)
        self._provisional = False
        return True

    def untrusted_reason(self, bundles: Bundles, now: datetime) -> str | None:
        """Why API servers with these caBundles do not trust what is served."""
        if self._provisional:
            return "there is no certificate yet"
        return verify.untrusted_reason(self.slot.context, self.slot.chain, bundles, self.host, now)

    def _may_roll_over(self, pair: KeyPair, bundles: Bundles, now: datetime) -> bool:
        new = pair.certificates
        trusted = verify.untrusted_reason(watcher.context(pair), new, bundles, self.host, now) is None
        self._trusted.observe([fingerprint(new[0])] if trusted else [], now)
        if self._provisional:
            return True
        if self.untrusted_reason(bundles, now) is not None:
            return trusted or not is_valid(self.slot.chain[0], now)
        # Both are trusted by what stands in the configurations; API servers may not have read it all yet.
        settled = bool(self._trusted.seen_for(self._settling, now))
        return trusted and (settled or self._same_issuer(new, bundles))

    def _same_issuer(self, new: tuple[x509.Certificate, ...], bundles: Bundles) -> bool:
        theirs, ours = verify.issuer(new, bundles), verify.issuer(self.slot.chain, bundles)
        return theirs is not None and theirs == ours
