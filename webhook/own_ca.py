"""Our own CA: in a Secret that all replicas share. The certificate that it signs is this process's own, in memory."""

from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from jobset_gate.kube.errors import ApiError, Conflict
from webhook.authority import Authority, has_expired, is_due, signed
from webhook.ca_secret import CaSecret
from webhook.pem import Pair, fingerprint
from webhook.publish import Live, LostRace
from webhook.rotation import Change, Seen, Terms, change
from webhook.sightings import Sightings
from webhook.sources import Now, Offer

log = structlog.get_logger("webhook.certificates")


class OwnCa:
    """The CA is in a Secret that all replicas share; the certificate is this process's own, in memory."""

    def __init__(
        self,
        secret: CaSecret,
        hosts: Sequence[str],
        terms: Terms,
        now: Now,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`changed` hears "ca" or "leaf" for each that is made."""
        self._secret, self._hosts, self._terms, self._now = secret, hosts, terms, now
        self._changed = changed
        self._seen = Sightings()
        self._pair: Pair | None = None

    async def offer(self, live: Live) -> Offer:
        """The Secret is read after `live`: who then writes `live` by its version cannot undo a later change of both."""
        now = self._now()
        self._seen.look(live.everywhere, now)
        settled = self._seen.lasting(self._terms.settling, now)
        stored, trouble = await self._secret.read(), None
        wanted = change(Seen(now, stored.contents, live.anywhere, settled), self._terms)
        contents = stored.contents
        if wanted is not None:
            try:
                contents = (await self._secret.write(stored, wanted.contents)).contents
                self._say(wanted)
            except Conflict as error:
                raise LostRace(self._secret.name) from error
            except ApiError as refused:
                trouble = f"Secret {self._secret.namespace}/{self._secret.name} cannot be written: {refused}"
                if contents is None or has_expired(contents.signers[0].certificate, now):
                    return Offer(None, None, trouble)
        if contents is None:
            raise LostRace(self._secret.name)
        return Offer(self._issued(contents.signers[0], now), contents.bundle, trouble)

    def _issued(self, ca: Authority, now: datetime) -> Pair:
        """The certificate of this replica: the one it has, as long as it is good."""
        if self._pair is not None:
            leaf = self._pair.certificates[0]
            if not is_due(leaf, now) and signed(leaf, ca.certificate):
                return self._pair
        self._pair = ca.issue(self._hosts, now=now, life=self._terms.leaf_life)
        self._changed("leaf")
        return self._pair

    def _say(self, made: Change) -> None:
        self._changed("ca")
        trusted = [fingerprint(one)[:16] for one in made.contents.trusted]
        log.info("CA Secret written", secret=self._secret.name, why=made.why, trusted=trusted)
