"""What is to be published and served, by whoever knows: see own_ca.py and brought.py."""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final, Protocol

import structlog

from jobset_gate.kube.errors import ApiError, Conflict
from webhook.certs.ca import (
    CertificateAuthority,
    KeyPair,
    certificates,
    fingerprint,
    has_expired,
    is_due,
    is_signed_by,
    joined,
)
from webhook.certs.ca_injector import InjectedCas, WriteConflict
from webhook.certs.ca_secret import CaSecretStore
from webhook.certs.rotation import FirstSeen, RotationChange, RotationPolicy, RotationSnapshot, change

Now = Callable[[], datetime]


@dataclass(frozen=True, slots=True)
class DesiredCertificate:
    """What should be published and served."""

    pair: KeyPair | None
    bundle: bytes | None
    """None: whoever keeps the caBundle is not us."""
    problem: str | None = None
    """What could not be done, and can wait."""


class CertSource(Protocol):
    """Either one."""

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """Raises LostRace, ApiError and Unreachable."""


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


OVERLAP: Final = timedelta(minutes=10)
"""How long CAs that are not in our file stay published: other replicas may have their mounted files changed that much
earlier or later, and may be served under the other CA."""


class FileSource:
    """Certificate and key are in files; the CA too if it is for us to publish."""

    def __init__(self, read: Callable[[], KeyPair], ca: Path | None, now: Now) -> None:
        self._read, self._ca, self._now = read, ca, now
        self._others: dict[str, datetime] = {}

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """What the files hold now; a file that is missing or torn for a moment is no reason to give anything up."""
        try:
            return DesiredCertificate(self._read(), self._bundle(live))
        except (OSError, ssl.SSLError) as problem:
            return DesiredCertificate(None, None, f"the certificate's files cannot be used: {problem}")

    def _bundle(self, live: InjectedCas) -> bytes | None:
        """Ours, and for a while those that other replicas may still need or need already."""
        if self._ca is None:
            return None
        ours = certificates(self._ca.read_bytes())
        if not ours:
            raise ssl.SSLError(f"no certificate in {self._ca}")
        now, known = self._now(), {fingerprint(one) for one in ours}
        others = {fingerprint(one): one for one in live.in_any if not has_expired(one, now)}
        self._others = {each: self._others.get(each, now) for each in others if each not in known}
        kept = [others[each] for each, since in self._others.items() if now - since < OVERLAP]
        return joined(sorted({*ours, *kept}, key=fingerprint))
