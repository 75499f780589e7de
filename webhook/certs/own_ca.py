"""Our own CA: in a Secret that all replicas share. The certificate that it signs is this process's own, in memory."""

from collections.abc import Callable, Sequence
from datetime import datetime

import structlog

from jobset_gate.kube.errors import ApiError, Conflict
from webhook.certs.ca import CertificateAuthority, has_expired, is_due, is_signed_by
from webhook.certs.ca_injector import InjectedCas, WriteConflict
from webhook.certs.ca_secret import CaSecretStore
from webhook.certs.first_seen import FirstSeen
from webhook.certs.pem import KeyPair, fingerprint
from webhook.certs.rotation import RotationChange, RotationPolicy, RotationSnapshot, change
from webhook.certs.sources import DesiredCertificate, Now

log = structlog.get_logger("webhook.certificates")


class OwnCaSource:
    """The CA is in a Secret that all replicas share; the certificate is this process's own, in memory."""

    def __init__(
        self,
        secret: CaSecretStore,
        hosts: Sequence[str],
        terms: RotationPolicy,
        now: Now,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`changed` hears "ca" or "leaf" for each that is made."""
        self._secret, self._hosts, self._terms, self._now = secret, hosts, terms, now
        self._changed = changed
        self._seen = FirstSeen()
        self._pair: KeyPair | None = None

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """The Secret is read after `live`: who then writes `live` by its version cannot undo a later change of both."""
        now = self._now()
        self._seen.observe(live.in_all, now)
        settled = self._seen.seen_for(self._terms.settling, now)
        stored, trouble = await self._secret.read(), None
        wanted = change(RotationSnapshot(now, stored.contents, live.in_any, settled), self._terms)
        contents = stored.contents
        if wanted is not None:
            try:
                contents = (await self._secret.write(stored, wanted.contents)).contents
                self._log_change(wanted)
            except Conflict as error:
                raise WriteConflict(self._secret.name) from error
            except ApiError as refused:
                trouble = f"Secret {self._secret.namespace}/{self._secret.name} cannot be written: {refused}"
                if contents is None or has_expired(contents.signers[0].certificate, now):
                    return DesiredCertificate(None, None, trouble)
        if contents is None:
            raise WriteConflict(self._secret.name)
        return DesiredCertificate(self._issued(contents.signers[0], now), contents.bundle, trouble)

    def _issued(self, ca: CertificateAuthority, now: datetime) -> KeyPair:
        """The certificate of this replica: the one it has, as long as it is good."""
        if self._pair is not None:
            leaf = self._pair.certificates[0]
            if not is_due(leaf, now) and is_signed_by(leaf, ca.certificate):
                return self._pair
        self._pair = ca.issue(self._hosts, now=now, life=self._terms.leaf_life)
        self._changed("leaf")
        return self._pair

    def _log_change(self, made: RotationChange) -> None:
        self._changed("ca")
        trusted = [fingerprint(one)[:16] for one in made.contents.trusted]
        log.info("CA Secret written", secret=self._secret.name, why=made.why, trusted=trusted)
