"""Sources of the serving certificate and the caBundle: a CA of our own in a Secret, or files that others write."""

import ssl
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

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

OVERLAP: Final = timedelta(minutes=10)
"""How long CAs that are not in our file stay published: mounted files of other replicas change earlier or later."""

log = structlog.get_logger("webhook.certificates")


@dataclass(frozen=True, slots=True)
class DesiredCertificate:
    """What should be in caBundle, and what should be served."""

    pair: KeyPair | None
    bundle: bytes | None
    """None: the caBundle is managed elsewhere, by cert-manager for example."""
    problem: str | None = None
    """What failed and is retried."""


class OwnCaSource:
    """All replicas share the CA in a Secret; each has a certificate of its own, in memory only."""

    def __init__(
        self,
        secret: CaSecretStore,
        hosts: Sequence[str],
        policy: RotationPolicy,
        now: Now,
        changed: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`changed` is called with "ca" or "leaf" for each new one."""
        self._secret, self._hosts, self._policy, self._now = secret, hosts, policy, now
        self._changed = changed
        self._seen = FirstSeen()
        self._pair: KeyPair | None = None

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """The Secret is read after `live`, so that a write with the version of `live` cannot undo a later change.

        Raises WriteConflict, ApiError and Unreachable.
        """
        now = self._now()
        self._seen.observe(live.in_all, now)
        settled = self._seen.seen_for(self._policy.settling, now)
        stored, problem = await self._secret.read(), None
        wanted = change(RotationSnapshot(now, stored.contents, live.in_any, settled), self._policy)
        contents = stored.contents
        if wanted is not None:
            try:
                contents = (await self._secret.write(stored, wanted.contents)).contents
                self._log_change(wanted)
            except Conflict as error:
                raise WriteConflict(self._secret.name) from error
            except ApiError as refused:
                problem = f"Secret {self._secret.namespace}/{self._secret.name} cannot be written: {refused}"
                if contents is None or has_expired(contents.signers[0].certificate, now):
                    return DesiredCertificate(None, None, problem)
        if contents is None:
            raise WriteConflict(self._secret.name)
        return DesiredCertificate(self._issued(contents.signers[0], now), contents.bundle, problem)

    def _issued(self, ca: CertificateAuthority, now: datetime) -> KeyPair:
        """The certificate of this replica: the present one, while it is good and of this CA."""
        if self._pair is not None:
            leaf = self._pair.certificates[0]
            if not is_due(leaf, now) and is_signed_by(leaf, ca.certificate):
                return self._pair
        self._pair = ca.issue(self._hosts, now=now, life=self._policy.leaf_life)
        self._changed("leaf")
        return self._pair

    def _log_change(self, made: RotationChange) -> None:
        self._changed("ca")
        trusted = [fingerprint(one)[:16] for one in made.contents.trusted]
        log.info("CA Secret written", secret=self._secret.name, why=made.why, trusted=trusted)


class FileSource:
    """Certificate and key are in files; so is the CA if we publish it."""

    def __init__(self, certificate: Path, key: Path, ca: Path | None, now: Now) -> None:
        self._certificate, self._key, self._ca, self._now = certificate, key, ca, now
        self._others = FirstSeen()

    async def desired(self, live: InjectedCas) -> DesiredCertificate:
        """What the files hold; a missing or half-written file changes nothing."""
        try:
            pair = KeyPair(self._certificate.read_bytes(), self._key.read_bytes())
            return DesiredCertificate(pair, self._bundle(live))
        except (OSError, ssl.SSLError) as problem:
            return DesiredCertificate(None, None, f"the certificate's files cannot be used: {problem}")

    def _bundle(self, live: InjectedCas) -> bytes | None:
        """The CA of our file, and for a while the CAs that other replicas still or already need."""
        if self._ca is None:
            return None
        ours = certificates(self._ca.read_bytes())
        if not ours:
            raise ssl.SSLError(f"no certificate in {self._ca}")
        now, known = self._now(), set(map(fingerprint, ours))
        others = {fingerprint(one): one for one in live.in_any if not has_expired(one, now)}
        self._others.observe(others.keys() - known, now)
        over = self._others.seen_for(OVERLAP, now) | known
        return joined(sorted({*ours, *(one for each, one in others.items() if each not in over)}, key=fingerprint))


CertSource = OwnCaSource | FileSource
